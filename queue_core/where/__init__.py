"""Where an open ticket waits: one layer each, said for one job and counted for all by the same precedence."""

from queue_core.contract.rules import PROBE, RESUME_WITHIN
from queue_core.where.counting import (
    CAPS,
    COUNT_CAP,
    LAYERS,
    LayerCount,
    LayerTable,
    in_layer,
    layer_params,
    layers,
    layers_from,
)
from queue_core.where.facts import (
    FACTS,
    HoldFacts,
    LaneFacts,
    Limit,
    facts_from,
    facts_of,
    facts_params,
    lanes_to_read,
)
from queue_core.where.locating import judge, locate
from queue_core.where.make_up import MOST_LOOKED_INTO, MakeUp, make_up
from queue_core.where.words import CLAIMABLE, FOR_THE_MODEL, Cause, Layer, Moves, Prospect, Standing

__all__ = [
    "CAPS",
    "CLAIMABLE",
    "COUNT_CAP",
    "FACTS",
    "FOR_THE_MODEL",
    "LAYERS",
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
    "facts_from",
    "facts_of",
    "facts_params",
    "in_layer",
    "judge",
    "lanes_to_read",
    "layer_params",
    "layers",
    "layers_from",
    "locate",
    "make_up",
]
