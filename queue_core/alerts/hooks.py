"""One notice posted to a webhook, signed as Standard Webhooks are, to an address that was checked."""

import json
import os
from datetime import timedelta

from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import ConfigurationFault
from queue_core.models import AlertHook, AlertNotice
from queue_core.states import AlertKind

TIME_LIMIT = timedelta(seconds=10)
PREFIX = "whsec_"


def post(notice: AlertNotice) -> str:
    """Post it and return "", or what went wrong: how the try ended and the status, never what was answered."""
    # Loaded by those who post: the pages and the workers need no HTTP client.
    from queue_core.relay.posting import post as post_to
    from queue_core.relay.signing import sign
    from queue_core.states import TryOutcome

    hook = notice.hook
    assert hook is not None, "a notice of this channel has a hook: a constraint says so"
    content, now = json.dumps(body_of(notice)).encode(), DATABASE_CLOCK.now()
    try:
        headers = sign([secret_of(hook)], str(notice.key), now, content)
    except ConfigurationFault as fault:
        return str(fault)
    headers["content-type"] = "application/json"
    answer = post_to(hook.address, content, headers, time_limit=TIME_LIMIT, now=now)
    if answer.outcome == TryOutcome.DELIVERED:
        return ""
    return f"{answer.outcome.value} {answer.status or ''}".strip()


def secret_of(hook: AlertHook) -> str:
    """From the environment. Raises ConfigurationFault where there is none, naming the variable and not its value."""
    secret = os.environ.get(hook.secret_env, "")
    if not secret.startswith(PREFIX):
        raise ConfigurationFault(f"The environment variable {hook.secret_env} holds no secret ({PREFIX}...).")
    return secret


def body_of(notice: AlertNotice) -> dict[str, object]:
    """What is posted: codes and parameters, and one plain name. No ticket and no evidence."""
    episode = notice.episode
    return {
        "type": f"alert.{notice.phase}",
        "id": str(notice.key),
        "alert": episode.pk,
        "kind": episode.kind,
        "name": str(AlertKind(episode.kind).label),
        "lane": episode.lane.name if episode.lane else None,
        "connection": episode.connection.name if episode.connection else None,
        "params": episode.params,
        "begun_at": episode.begun_at.isoformat(),
        "over_at": episode.over_at.isoformat() if episode.over_at else None,
        "acknowledged_by": episode.acknowledged_by.get_username() if episode.acknowledged_by else None,
    }
