"""Signals for a Django project that embeds the queue: sent inside the transaction that makes them true.

A receiver's own writes are committed with what it was told of, or neither is. One that raises takes the whole back: a
completion is then given back as an invalid answer (of a batch only the guilty one is), a person's decision is refused.
It runs while the ticket's and the job's rows are locked, so it has to be quick, and must not call out.
"""

from django.dispatch import Signal

#: A machine's result of a job, with `sender=Job`: `job`, `ticket`, `attempt`, `result` (APPROVED, REJECTED or MANUAL),
#: and `decision`, which is None for MANUAL.
job_completed = Signal()
#: A decision with a verdict, by the model or by a person, with `sender=Decision`: `decision`, `ticket`.
ticket_decided = Signal()
#: A person's decision that the same person took back before its message went out, with `sender=Decision`: `decision`,
#: `link` (the link of the chain that says so; its verdict is what is in force again, None for nothing), `ticket`.
decision_taken_back = Signal()
