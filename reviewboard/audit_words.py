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
from django.utils.translation import gettext_lazy

from queue_core.models import AuditEntry
from queue_core.models.api_keys import KeyScope
from queue_core.states import AlertKind, BulkKind, HoldForm, HoldReason, MessageKind, RecallTo, Verdict
from reviewboard.shapes import Text
from reviewboard.templatetags.board import duration, zone_label

#: Fields that are no column of what the act is about, or say more than their column's name.
FIELDS: dict[str, Text] = {
    "agrees": gettext_lazy("agrees with the first"),
    "as": gettext_lazy("kind of file"),
    "automatic": gettext_lazy("by the system itself"),
    "by": gettext_lazy("by way of"),
    "deadline": gettext_lazy("deadline"),
    "decided": gettext_lazy("decided"),
    "decision": gettext_lazy("number of the decision"),
    "decisions": gettext_lazy("decisions"),
    "entry": gettext_lazy("number of the entry"),
    "evidence": gettext_lazy("number of the evidence"),
    "file": gettext_lazy("file"),
    "filter": gettext_lazy("filter"),
    "fingerprint": gettext_lazy("fingerprint of the secret"),
    "for_leads": gettext_lazy("for leads"),
    "form": gettext_lazy("kind of hold"),
    "hold": gettext_lazy("number of the hold"),
    "issuer": gettext_lazy("provider of single sign-on"),
    "item": gettext_lazy("number of the item"),
    "jobs": gettext_lazy("jobs"),
    "kept_until": gettext_lazy("kept until"),
    "lane_roles": gettext_lazy("roles on single lanes"),
    "lead_on_duty": gettext_lazy("lead on duty"),
    "left": gettext_lazy("not done"),
    "mapping": gettext_lazy("columns"),
    "old_signs_until": gettext_lazy("the secret before it signs until"),
    "params": gettext_lazy("figures"),
    "policy": gettext_lazy("version of the policy"),
    "questions": gettext_lazy("questions"),
    "reason": gettext_lazy("cause"),
    "reason_code": gettext_lazy("reason code"),
    "recall": gettext_lazy("number of the recall"),
    "refused": gettext_lazy("running results refused"),
    "rejected": gettext_lazy("rejected"),
    "restricted": gettext_lazy("restricted"),
    "revision": gettext_lazy("revision"),
    "right": gettext_lazy("right that is missing"),
    "roles": gettext_lazy("roles"),
    "rules": gettext_lazy("rules"),
    "run": gettext_lazy("number of the stage run"),
    "selection": gettext_lazy("selection"),
    "stage": gettext_lazy("stage"),
    "sub": gettext_lazy("number at the provider"),
    "taken_by": gettext_lazy("taken by"),
    "terms": gettext_lazy("terms"),
    "to": gettext_lazy("becomes"),
    "tries": gettext_lazy("tries"),
    "until": gettext_lazy("until"),
    "verdict": gettext_lazy("verdict"),
    "version": gettext_lazy("version"),
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
