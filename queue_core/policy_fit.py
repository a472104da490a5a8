"""Whether a policy and its lane's connection fit: told when the policy is made, instead of by a held lane."""

from collections.abc import Sequence
from difflib import get_close_matches

from django.utils.translation import gettext as _

from queue_core.connections import build
from queue_core.errors import ConfigurationFault
from queue_core.models import ModelConnection
from queue_core.policy import Policy
from queue_core.questions import Problem, Question

#: A name is told with so many of those that it might have been.
MOST_NAMED = 6


def misfits(policy: Policy, questions: Sequence[Question], connection: ModelConnection) -> list[Problem]:
    """What of the policy can never work with this connection. Empty also where the connection does not tell.

    A kind tells by two attributes of its adapter: `asks`, whether it sends questions, and `categories(questions)`, the
    names of the scores that its answers bring, or None where only the server knows them.
    """
    try:
        adapter = build(connection)
    except ConfigurationFault:
        # Its own fault, told where it is set up.
        return []
    asks = getattr(adapter, "asks", None)
    problems = []
    if asks is True and not questions:
        problems.append(Problem("questions", _("This lane's model is asked: at least one question is needed.")))
    if asks is False and questions:
        problems.append(Problem("questions", _("This lane's model asks its own questions: leave these out.")))
    name_scores = getattr(adapter, "categories", None)
    known = name_scores(questions) if callable(name_scores) else None
    return problems if known is None or problems else [*problems, *_unknown(policy, known)]


def _unknown(policy: Policy, known: Sequence[str]) -> list[Problem]:
    """Rules about scores that no answer brings. Each would send every ticket to people."""
    return [
        Problem(
            f"rules: {category}",
            _("No answer brings a score of this name. It brings: %(names)s.") % {"names": _nearest(category, known)},
        )
        for category in policy.categories
        if category not in known
    ]


def _nearest(category: str, known: Sequence[str]) -> str:
    near = get_close_matches(category, known, n=MOST_NAMED, cutoff=0.0)
    return ", ".join(near) + (", …" if len(known) > len(near) else "")
