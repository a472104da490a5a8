"""Where an open ticket waits: one layer each, said for one job and counted for all by the same precedence."""

from queue_core.contract.rules import PROBE, RESUME_WITHIN
from queue_core.where.counting import COUNT_CAP, LayerCount, LayerTable, in_layer, layers
from queue_core.where.facts import HoldFacts, LaneFacts, Limit, facts_of, lanes_to_read
from queue_core.where.locating import judge, locate
from queue_core.where.make_up import MOST_LOOKED_INTO, MakeUp, make_up
from queue_core.where.words import CLAIMABLE, FOR_THE_MODEL, Cause, Layer, Moves, Prospect, Standing

__all__ = [
    "CLAIMABLE",
    "COUNT_CAP",
    "FOR_THE_MODEL",
    "MOST_LOOKED_INTO",
    "PROBE",
    "RESUME_WITHIN",
    "Cause",
    "HoldFacts",
    "LaneFacts",
    "Layer",
    "LayerCount",
    "LayerTable",
    "Limit",
    "MakeUp",
    "Moves",
    "Prospect",
    "Standing",
    "facts_of",
    "in_layer",
    "judge",
    "lanes_to_read",
    "layers",
    "locate",
    "make_up",
]
