"""What `manage.py bench` measures: the contract's verbs beside the least SQL that could do such work, in one run.

Only ratios within one run mean anything. What is compared runs in turns of a few seconds each, so that a machine's
noise falls on both, and a ratio is the middle one of those turns.
"""
