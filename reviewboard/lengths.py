"""Lengths of time that forms offer. From now on, so that no time zone can be mistaken (IMP-15)."""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

LENGTHS = {
    "0": timedelta(0),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "2h": timedelta(hours=2),
    "4h": timedelta(hours=4),
    "8h": timedelta(hours=8),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
DEADLINES = [
    ("30m", _("in 30 minutes")),
    ("1h", _("in 1 hour")),
    ("4h", _("in 4 hours")),
    ("8h", _("in 8 hours")),
    ("24h", _("in 24 hours")),
    ("3d", _("in 3 days")),
    ("7d", _("in 7 days")),
]
SPANS = [
    ("0", _("nothing: one deadline for all")),
    ("30m", _("30 minutes")),
    ("1h", _("1 hour")),
    ("2h", _("2 hours")),
    ("4h", _("4 hours")),
    ("8h", _("8 hours")),
    ("24h", _("24 hours")),
]


def length_of(code: str) -> timedelta:
    return LENGTHS[code]
