"""What the page of deliveries says: an endpoint's last answer, and how the tries of a message went."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from queue_core.models import Delivery, Endpoint
from queue_core.relay import EndpointActed, EndpointOutcome, Replayed, Standing
from queue_core.states import DeliveryState, EndpointState, TryOutcome
from reviewboard.shapes import Conflict, Tone
from reviewboard.templatetags.board import count, count_capped

STATE_TONES = {
    DeliveryState.PENDING: Tone.INFO,
    DeliveryState.DELIVERED: Tone.GOOD,
    DeliveryState.GIVEN_UP: Tone.BAD,
    DeliveryState.WITHDRAWN: Tone.IDLE,
}


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint with its sentences. `said` is how its last try ended, `waiting` what is not delivered."""

    standing: Standing
    tone: Tone
    word: str
    said: str
    waiting: str
    given_up: str
    kinds: str
    lanes: str
    next_try: datetime | None

    @property
    def endpoint(self) -> Endpoint:
        return self.standing.endpoint


def endpoint_row(standing: Standing, lanes: dict[int, str], *, now: datetime) -> EndpointRow:
    endpoint = standing.endpoint
    tone, word = _state(standing)
    return EndpointRow(
        standing=standing,
        tone=tone,
        word=word,
        said=answer_text(endpoint.last_outcome, endpoint.last_status) if endpoint.last_outcome else "",
        waiting=_waiting(standing),
        given_up=_given_up(standing),
        kinds=_(", ").join(endpoint.kinds),
        lanes=_(", ").join(lanes.get(pk, str(pk)) for pk in endpoint.lanes) or _("all lanes"),
        next_try=endpoint.open_until if endpoint.open_until and endpoint.open_until > now else None,
    )


def _state(standing: Standing) -> tuple[Tone, str]:
    if standing.endpoint.state == EndpointState.DISABLED:
        return Tone.HOLD, pgettext("endpoint", "disabled")
    if standing.is_failing:
        return Tone.BAD, pgettext("endpoint", "failing")
    if standing.endpoint.last_delivered_at is None:
        return Tone.IDLE, pgettext("endpoint", "nothing sent yet")
    return Tone.GOOD, pgettext("endpoint", "delivers")


def _waiting(standing: Standing) -> str:
    if not standing.waiting:
        return _("Nothing waits for it.")
    text = ngettext("%(number)s message waits for it.", "%(number)s messages wait for it.", standing.waiting)
    return text % {"number": count_capped(standing.waiting)}


def _given_up(standing: Standing) -> str:
    if not standing.given_up:
        return ""
    text = ngettext("%(number)s message was given up.", "%(number)s messages were given up.", standing.given_up)
    return text % {"number": count_capped(standing.given_up)}


ANSWERS = {
    TryOutcome.DELIVERED: lambda: _("It took the message."),
    TryOutcome.REDIRECT: lambda: _(
        "It answered %(status)s, a redirect. Redirects are not followed: give its own address."
    ),
    TryOutcome.GONE: lambda: _("It answered 410: it wants no more messages."),
    TryOutcome.REFUSED: lambda: _("It answered %(status)s: it refuses the message."),
    TryOutcome.FAILED: lambda: _("It answered %(status)s: it failed."),
    TryOutcome.TIMEOUT: lambda: _("It did not answer in time. Whether it has the message is not known."),
    TryOutcome.UNREACHABLE: lambda: _("It could not be reached."),
    TryOutcome.FORBIDDEN_ADDRESS: lambda: _("Its address may not be called."),
    TryOutcome.NO_SECRET: lambda: _(
        "Its secret was made under a SECRET_KEY that is gone. Make a new one in the admin."
    ),
    TryOutcome.LOST: lambda: _("The sender vanished. Whether the endpoint has the message is not known."),
}


def answer_text(outcome: str, status: int | None) -> str:
    """How one try ended, as a sentence."""
    if outcome == TryOutcome.FAILED and status is None:
        return _("The connection broke. Whether it has the message is not known.")
    return ANSWERS[TryOutcome(outcome)]() % {"status": status}


def tries_text(delivery: Delivery, outcomes: list[str | None]) -> str:
    """How the tries of a message went, shortest: “time-out, then ok”."""
    words: list[str] = []
    for outcome in outcomes:
        word = str(TryOutcome(outcome).label) if outcome else pgettext("try", "running")
        if not words or words[-1] != word:
            words.append(word)
    if not words:
        return _("not tried yet") if delivery.state == DeliveryState.PENDING else ""
    if len(words) == 1:
        return words[0]
    return _("%(before)s, then %(last)s") % {"before": _(", ").join(words[:-1]), "last": words[-1]}


def replayed_text(replayed: Replayed) -> str:
    if not replayed.number:
        return _("Nothing was sent again: what you chose waits already, was withdrawn, or is for a retired endpoint.")
    text = ngettext(
        "%(number)s message is sent again, with the same id.",
        "%(number)s messages are sent again, with the same ids.",
        replayed.number,
    )
    more = _("There are more: repeat it for the rest.") if replayed.more else ""
    return " ".join(filter(None, [text % {"number": count(replayed.number)}, more]))


def act_conflict(acted: EndpointActed) -> Conflict:
    """Why an act on an endpoint did nothing."""
    endpoint = acted.endpoint
    if acted.outcome == EndpointOutcome.RETIRED:
        what = _("The endpoint is retired: nothing is sent to it any more.")
    elif endpoint.state == EndpointState.DISABLED:
        what = _("The endpoint is disabled already.")
    else:
        what = _("The endpoint is enabled already.")
    return Conflict(what=what, who=endpoint.changed_state_name, at=endpoint.changed_state_at)
