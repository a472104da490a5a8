"""Where an open ticket waits: one layer each, said for one job and counted for all by the same precedence."""

from queue_core.contract.rules import PROBE, RESUME_WITHIN
from queue_core.where.counting import COUNT_CAP, LayerCount, LayerTable, in_layer, layers
from queue_core.where.facts import HoldFacts, LaneFacts, Limit, facts_of, lanes_to_read
from queue_core.where.locating import judge, locate
from queue_core.where.words import CLAIMABLE, Cause, Layer, Moves, Standing

__all__ = [
    "CLAIMABLE",
    "COUNT_CAP",
    "PROBE",
    "RESUME_WITHIN",
    "Cause",
    "HoldFacts",
    "LaneFacts",
    "Layer",
    "LayerCount",
    "LayerTable",
    "Limit",
    "Moves",
    "Standing",
    "facts_of",
    "in_layer",
    "judge",
    "lanes_to_read",
    "layers",
    "locate",
]
