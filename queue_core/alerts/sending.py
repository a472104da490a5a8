"""Notices sent: each taken by one sender, tried a few times with growing pauses, then given up with its fault."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F
from django.utils.module_loading import import_string

from queue_core.alerts.hooks import post
from queue_core.clock import Clock
from queue_core.models import AlertNotice
from queue_core.states import AlertChannel

logger = logging.getLogger(__name__)

#: A sender that died frees its notice after this; longer than any channel's own time limit.
TAKEN_FOR = timedelta(minutes=2)
MOST_AT_ONCE = 20
#: After each try that failed. One more, and it is given up.
PAUSES = (
    timedelta(seconds=15),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=60),
)
MOST_FAULT = 300

type Send = Callable[[AlertNotice], str]
"""Sends one notice. Returns "" or what went wrong, in a few words without an address or a secret."""


@dataclass(frozen=True, slots=True)
class Sent:
    sent: int = 0
    failed: int = 0


def is_mail_set_up() -> bool:
    """Whether anything is to send mail with. Without, nobody is put down to get any."""
    return bool(_mail_path())


def send_due(*, clock: Clock) -> Sent:
    """Send what is due, a bounded number. A channel that fails is left alone until the next turn."""
    sent = failed = 0
    broken: set[str] = set()
    due = AlertNotice.objects.filter(sent_at__isnull=True, given_up_at__isnull=True, due_at__lte=clock.now())
    for pk, channel in due.order_by("due_at", "pk").values_list("pk", "channel")[:MOST_AT_ONCE]:
        if channel in broken or not _take(pk, clock.now()):
            continue
        if _try(_row(pk), clock):
            sent += 1
        else:
            failed += 1
            broken.add(channel)
    return Sent(sent, failed)


def _take(pk: int, now: datetime) -> bool:
    """Two senders at once: the one that moves the time sends."""
    taken = AlertNotice.objects.filter(pk=pk, sent_at__isnull=True, given_up_at__isnull=True, due_at__lte=now)
    return bool(taken.update(due_at=now + TAKEN_FOR, tries=F("tries") + 1))


def _row(pk: int) -> AlertNotice:
    rows = AlertNotice.objects.select_related("person", "hook", "episode__lane", "episode__connection")
    return rows.select_related("episode__acknowledged_by").get(pk=pk)


def _try(notice: AlertNotice, clock: Clock) -> bool:
    fault = _send(notice)
    now = clock.now()
    if not fault:
        notice.sent_at, notice.fault = now, ""
        notice.save(update_fields=["sent_at", "fault"])
        return True
    logger.warning("notice %d of alert %d could not be sent: %s", notice.pk, notice.episode_id, fault)
    notice.fault = fault[:MOST_FAULT]
    if notice.tries > len(PAUSES):
        notice.given_up_at = now
    else:
        notice.due_at = now + PAUSES[notice.tries - 1]
    notice.save(update_fields=["given_up_at", "due_at", "fault"])
    return False


def _send(notice: AlertNotice) -> str:
    try:
        send: Send = post if notice.channel == AlertChannel.HOOK else import_string(_mail_path())
        return send(notice)
    except Exception as error:
        # By its kind alone: the message of a mail server or a resolver may name an address.
        logger.exception("a notice's channel raised")
        return type(error).__name__


def _mail_path() -> str:
    path: str = getattr(settings, "QUEUE_CORE_ALERT_MAIL", "")
    return path
