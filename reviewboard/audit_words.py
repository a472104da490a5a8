"""What an entry of the audit is about, and its fields and their values, as people read them. Files keep the codes."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.utils import formats, timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from queue_core.models import AuditEntry
from queue_core.models.api_keys import KeyScope
from queue_core.states import AlertKind, BulkKind, HoldForm, HoldReason, MessageKind, RecallTo, Verdict
from reviewboard.shapes import Text
from reviewboard.templatetags.board import duration, zone_label

#: Fields that are no column of what the act is about, or say more than their column's name.
FIELDS: dict[str, Text] = {
    "agrees": lazy("agrees with the first"),
    "as": lazy("kind of file"),
    "automatic": lazy("by the system itself"),
    "by": lazy("by way of"),
    "deadline": lazy("deadline"),
    "decided": lazy("decided"),
    "decision": lazy("number of the decision"),
    "decisions": lazy("decisions"),
    "entry": lazy("number of the entry"),
    "evidence": lazy("number of the evidence"),
    "file": lazy("file"),
    "filter": lazy("filter"),
    "fingerprint": lazy("fingerprint of the secret"),
    "for_leads": lazy("for leads"),
    "form": lazy("kind of hold"),
    "hold": lazy("number of the hold"),
    "issuer": lazy("provider of single sign-on"),
    "item": lazy("number of the item"),
    "jobs": lazy("jobs"),
    "kept_until": lazy("kept until"),
    "lane_roles": lazy("roles on single lanes"),
    "lead_on_duty": lazy("lead on duty"),
    "left": lazy("not done"),
    "mapping": lazy("columns"),
    "old_signs_until": lazy("the secret before it signs until"),
    "params": lazy("figures"),
    "policy": lazy("version of the policy"),
    "questions": lazy("questions"),
    "reason": lazy("cause"),
    "reason_code": lazy("reason code"),
    "recall": lazy("number of the recall"),
    "refused": lazy("running results refused"),
    "rejected": lazy("rejected"),
    "restricted": lazy("restricted"),
    "revision": lazy("revision"),
    "right": lazy("right that is missing"),
    "roles": lazy("roles"),
    "rules": lazy("rules"),
    "run": lazy("number of the stage run"),
    "selection": lazy("selection"),
    "stage": lazy("stage"),
    "sub": lazy("number at the provider"),
    "taken_by": lazy("taken by"),
    "terms": lazy("terms"),
    "to": lazy("becomes"),
    "tries": lazy("tries"),
    "until": lazy("until"),
    "verdict": lazy("verdict"),
    "version": lazy("version"),
}
#: Codes that are no choices of a column of what the act is about.
CODES: dict[str, type[models.TextChoices]] = {
    "verdict": Verdict, "to": RecallTo, "form": HoldForm, "reason": HoldReason, "scopes": KeyScope,
}  # fmt: skip
KINDS: dict[str, type[models.TextChoices]] = {
    "endpoint": MessageKind, "alerthook": AlertKind, "alertsettings": AlertKind, "alertsubscription": AlertKind,
    "alertepisode": AlertKind, "bulkact": BulkKind,
}  # fmt: skip
TIMES = frozenset({"deadline", "kept_until", "old_signs_until", "since", "until"})
#: Models whose rows have a name of their own; others are told by number.
NUMBERED = frozenset({"outage", "recall", "bulkact", "blindcheck", "secondlook", "appeal"})


def target(entry: AuditEntry) -> Text:
    """What an act was done to: the kind of thing, and its name or number."""
    kind, name = entry.subject_type, entry.subject
    if kind == "policy":
        return _("version %(number)s of the policy") % {"number": name.rpartition(" v")[2]}
    if kind == "stagerun":
        return _("stage %(number)s") % {"number": name.rpartition("/")[2]}
    if kind == "alertepisode":
        code = name.partition(" ")[0]
        return str(AlertKind(code).label) if code in AlertKind.values else name
    model = _models().get(kind)
    if model is None:
        return name
    named = entry.subject_id if kind in NUMBERED else name
    return _("%(kind)s %(name)s") % {"kind": model._meta.verbose_name, "name": named}


def field_name(kind: str, name: str) -> str:
    """A field of what an act is about; its code where a later version wrote one that this one does not know."""
    column = _column(kind, name)
    if name in FIELDS and (column is None or column.is_relation):
        return str(FIELDS[name])
    if column is not None and not name.startswith("_"):
        return str(column.verbose_name)
    return name


def value(kind: str, name: str, stored: Any, *, lanes: Mapping[int, str] | None = None) -> str:
    """A stored value as a person reads it. `lanes` names those that the reader may see, by id."""
    if isinstance(stored, bool):
        return _("yes") if stored else _("no")
    if isinstance(stored, dict):
        parts = [(field_name(kind, key), one) for key, one in stored.items() if one not in (None, "", [], {})]
        return ", ".join(f"{label}: {value(kind, '', one)}" for label, one in parts)
    if isinstance(stored, list):
        return _listed(kind, name, stored, lanes or {})
    column = _column(kind, name)
    if isinstance(column, models.DurationField) and isinstance(stored, int | float):
        return duration(stored)
    if isinstance(stored, str):
        return _of_text(kind, name, stored, column)
    labels = dict(column.flatchoices) if column is not None and column.choices else {}
    return str(labels.get(stored, stored))


def _listed(kind: str, name: str, stored: list[Any], lanes: Mapping[int, str]) -> str:
    if name == "lanes":
        return ", ".join(lanes.get(one, str(one)) for one in stored) or _("all lanes")
    told = [value(kind, name, one) for one in stored]
    return (" · " if any(isinstance(one, dict) for one in stored) else ", ").join(told) or _("none")


def _of_text(kind: str, name: str, stored: str, column: "models.Field[Any, Any] | None") -> str:
    codes = KINDS.get(kind, AlertKind) if name in ("kind", "kinds") else CODES.get(name)
    if codes is not None and stored in codes.values:
        return str(codes(stored).label)
    if isinstance(column, models.DateTimeField) or name in TIMES:
        at = parse_datetime(stored)
        if at is not None and timezone.is_aware(at):
            local = timezone.localtime(at)
            return f"{formats.date_format(local, 'Y-m-d H:i:s')} {zone_label(local)}"
    labels = dict(column.flatchoices) if column is not None and column.choices else {}
    return str((_rights() if name == "right" else labels).get(stored, stored))


def changed_stages(before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """Of two plans the fields that differ, named by their stage, with the value in each; None where it has no stage."""
    old, new = ({stage["number"]: stage for stage in plan if "number" in stage} for plan in (before, after))
    found: dict[str, tuple[Any, Any]] = {}
    for number in sorted(old.keys() | new.keys()):
        was, now = old.get(number, {}), new.get(number, {})
        for name in was.keys() | now.keys():
            if was.get(name) != now.get(name) and name != "number":
                label = _("stage %(number)s, %(field)s") % {"number": number, "field": field_name("stage", name)}
                found[label] = (_stage_value(was, name), _stage_value(now, name))
    return found


def _stage_value(stage: dict[str, Any], name: str) -> str | None:
    return None if stage.get(name) is None else value("stage", name, stage[name])


def _column(kind: str, name: str) -> "models.Field[Any, Any] | None":
    model = _models().get(kind)
    if model is None or not name:
        return None
    try:
        found = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return found if isinstance(found, models.Field) else None


@cache
def _rights() -> dict[str, Text]:
    """What each right is for, by its code."""
    return {code: label for model in _models().values() for code, label in model._meta.permissions}


@cache
def _models() -> dict[str, type[models.Model]]:
    own = (app for app in apps.get_app_configs() if app.label in ("queue_core", "reviewboard"))
    return {model._meta.model_name or "": model for app in own for model in app.get_models()}
