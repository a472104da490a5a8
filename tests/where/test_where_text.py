"""Every code has a sentence, in whole."""

import pytest

from queue_core.states import HoldReason
from queue_core.where import Cause, Layer, Moves, Standing
from reviewboard import where_text
from tests.factories import at

PARAMS = {
    "since": at(0),
    "at": at(1),
    "until": None,
    "deadline": at(2),
    "by": "olga",
    "reason": HoldReason.PRECAUTION.value,
    "fence": 3,
    "attempts": 1,
    "value": 2,
    "stage": 2,
    "endpoint": "shop",
    "tries": 2,
    "verdict": "APPROVED",
}


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_said_in_one_sentence(cause: Cause) -> None:
    said = where_text.sentence(Standing(Layer.HELD, cause, Moves.TIME, PARAMS))

    assert said.endswith(".")
    assert "%" not in said


@pytest.mark.parametrize("moves", Moves)
def test_everything_that_moves_a_ticket_is_said(moves: Moves) -> None:
    said = where_text.mover(Standing(Layer.HELD, Cause.NEXT, moves, PARAMS))

    assert said.endswith(".") or moves == Moves.NOTHING
    assert "%" not in said


@pytest.mark.parametrize("layer", Layer)
def test_every_layer_has_a_name_and_says_what_moves_it(layer: Layer) -> None:
    assert where_text.layer_name(layer)
    assert where_text.layer_note(layer).endswith(".")


def test_a_hold_with_an_end_names_it() -> None:
    standing = Standing(Layer.HELD, Cause.HELD_BY_PERSON, Moves.LEAD_RESUMES, PARAMS | {"until": at(3600)})

    assert "2026-01-01 01:00" in where_text.sentence(standing)
