"""Statements of reasons: what the author of rejected content has to be told (Digital Services Act, article 17).

The plain table holds what the article asks for, in our words. The form of the EU's transparency database holds the same
in its words, by a mapping that says what only the platform knows: which clause is law and which is terms, what was done
to the content, which of the database's categories a reason code is.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from queue_core.errors import ConfigurationFault
from queue_core.exports.decisions import decided_by
from queue_core.exports.periods import Period
from queue_core.exports.reading import batches
from queue_core.exports.tables import Cell, Column, Kind, Row, Table
from queue_core.models import Decision, Lane, ReasonCode
from queue_core.states import Automation, SourceKind, Verdict

REJECTED = Q(verdict=Verdict.REJECTED)

TABLE = Table(
    (
        Column("statement"),
        Column("source"),
        Column("ticket"),
        Column("revision"),
        Column("restriction"),
        Column("ground"),
        Column("clause"),
        Column("facts"),
        Column("notice"),
        Column("automated_detection", Kind.FLAG),
        Column("automated_decision"),
        Column("decided_by"),
        Column("redress"),
        Column("in_force", Kind.FLAG),
        Column("decided_at", Kind.MOMENT),
    )
)

EU_TABLE = Table(
    (
        Column("puid"),
        Column("decision_visibility", Kind.TEXTS),
        Column("decision_ground"),
        Column("illegal_content_legal_ground"),
        Column("illegal_content_explanation"),
        Column("incompatible_content_ground"),
        Column("incompatible_content_explanation"),
        Column("content_type", Kind.TEXTS),
        Column("category"),
        Column("territorial_scope", Kind.TEXTS),
        Column("content_date"),
        Column("application_date"),
        Column("decision_facts"),
        Column("source_type"),
        Column("automated_detection"),
        Column("automated_decision"),
    )
)

SOURCE_TYPES = {
    SourceKind.OWN_DETECTION: "SOURCE_VOLUNTARY",
    SourceKind.USER_NOTICE: "SOURCE_ARTICLE_16",
    SourceKind.TRUSTED_FLAGGER: "SOURCE_TRUSTED_FLAGGER",
    SourceKind.AUTHORITY_ORDER: "SOURCE_TYPE_OTHER_NOTIFICATION",
    SourceKind.APPEAL: "SOURCE_TYPE_OTHER_NOTIFICATION",
}
AUTOMATED = {
    Automation.WHOLLY: "AUTOMATED_DECISION_FULLY",
    Automation.PARTLY: "AUTOMATED_DECISION_PARTIALLY",
    Automation.NONE: "AUTOMATED_DECISION_NOT_AUTOMATED",
}
GROUNDS = {"illegal": "DECISION_GROUND_ILLEGAL_CONTENT", "incompatible": "DECISION_GROUND_INCOMPATIBLE_CONTENT"}
FACTS = "Ticket of source {source}, received as: {notice}. Reviewed under the reason code {code}: {title}."


@dataclass(frozen=True, slots=True)
class Mapped:
    """How one reason code is said to the EU's database."""

    ground: str
    category: str
    visibility: list[str]


@dataclass(frozen=True, slots=True)
class EuMapping:
    """From a JSON file: see `read` for its shape."""

    codes: Mapping[str, Mapped]
    content_type: list[str]
    territorial_scope: list[str]

    @classmethod
    def read(cls, path: Path) -> "EuMapping":
        """`{"content_type": [...], "territorial_scope": [...], "visibility": [...], "reason_codes": {code: {"ground":
        "illegal" or "incompatible", "category": "STATEMENT_CATEGORY_...", "visibility": [...] where it differs}}}`.

        Raises ConfigurationFault naming the field, also for a reason code in use that the file leaves out: a statement
        that is left out silently would be one that nobody was told of.
        """
        found = _loaded(path)
        usual = _texts(found, "visibility", "DECISION_VISIBILITY_")
        codes = {}
        entries = found.get("reason_codes")
        if not isinstance(entries, dict):
            raise _fault("reason_codes", _("an object of reason codes"))
        for code, entry in entries.items():
            codes[code] = _mapped(f"reason_codes.{code}", entry, usual)
        missing = set(ReasonCode.objects.filter(is_for_rejection=True).values_list("code", flat=True)) - set(codes)
        if missing:
            raise _fault("reason_codes", _("an entry for %(codes)s") % {"codes": ", ".join(sorted(missing))})
        return cls(codes, _texts(found, "content_type", "CONTENT_TYPE_"), _texts(found, "territorial_scope", ""))


def rows(period: Period, *, lanes: Collection[Lane], redress: str = "") -> Iterator[Sequence[Row]]:
    """Rows of TABLE, a batch at a time: each rejection of the period, by model or person."""
    for found in batches(period, lanes=lanes, only=REJECTED):
        yield [_row(decision, redress) for decision in found]


def eu_rows(period: Period, *, lanes: Collection[Lane], mapping: EuMapping) -> Iterator[Sequence[Row]]:
    """Rows of EU_TABLE: what its API takes for each statement."""
    for found in batches(period, lanes=lanes, only=REJECTED):
        yield [_eu_row(decision, mapping) for decision in found]


def statement_id(decision: Decision) -> str:
    """Unique for good, and of the letters that the database takes: a decision's number never comes again."""
    return f"reviewboard-{decision.pk}"


def _ground(decision: Decision) -> ReasonCode:
    assert decision.reason_code is not None, "a constraint gives every rejection a ground"
    return decision.reason_code


def _row(decision: Decision, redress: str) -> Row:
    ground = _ground(decision)
    return (
        statement_id(decision),
        decision.ticket.source,
        decision.ticket.external_id,
        decision.revision,
        "rejected",
        ground.code,
        ground.clause,
        ground.public_text or ground.title,
        SourceKind(decision.source_kind).value,
        decision.source_kind == SourceKind.OWN_DETECTION,
        decision.automation,
        decided_by(decision),
        redress,
        not hasattr(decision, "replaced_by"),
        decision.decided_at,
    )


def _eu_row(decision: Decision, mapping: EuMapping) -> Row:
    ground = _ground(decision)
    mapped = mapping.codes[ground.code]
    is_illegal = mapped.ground == GROUNDS["illegal"]
    reason: tuple[Cell, Cell] = (ground.clause or ground.title, ground.public_text or ground.title)
    nothing: tuple[Cell, Cell] = (None, None)
    facts = FACTS.format(
        source=decision.ticket.source, notice=decision.source_kind, code=ground.code, title=ground.title
    )
    return (
        statement_id(decision),
        mapped.visibility,
        mapped.ground,
        *(reason if is_illegal else nothing),
        *(nothing if is_illegal else reason),
        mapping.content_type,
        mapped.category,
        mapping.territorial_scope,
        decision.ticket.first_seen_at.date().isoformat(),
        decision.decided_at.date().isoformat(),
        facts,
        SOURCE_TYPES[SourceKind(decision.source_kind)],
        "Yes" if decision.source_kind == SourceKind.OWN_DETECTION else "No",
        AUTOMATED[Automation(decision.automation)],
    )


def _loaded(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationFault(
            _("%(file)s cannot be read: %(error)s") % {"file": path, "error": error.strerror}
        ) from error
    except ValueError as error:
        raise ConfigurationFault(_("%(file)s is no JSON: %(error)s") % {"file": path, "error": error}) from error
    if not isinstance(found, dict):
        raise ConfigurationFault(_("%(file)s holds no JSON object.") % {"file": path})
    return found


def _mapped(field: str, entry: Any, usual: list[str]) -> Mapped:
    if not isinstance(entry, dict) or entry.get("ground") not in GROUNDS:
        raise _fault(f"{field}.ground", "illegal | incompatible")
    category = entry.get("category")
    if not isinstance(category, str) or not category.startswith("STATEMENT_CATEGORY_"):
        raise _fault(f"{field}.category", "STATEMENT_CATEGORY_…")
    visibility = _texts(entry, "visibility", "DECISION_VISIBILITY_", field) if "visibility" in entry else usual
    return Mapped(GROUNDS[entry["ground"]], category, visibility)


def _texts(found: Mapping[str, Any], name: str, begins: str, within: str = "") -> list[str]:
    value = found.get(name)
    field = f"{within}.{name}" if within else name
    if not isinstance(value, list) or not value:
        raise _fault(field, _("a list of texts"))
    if not all(isinstance(one, str) and one.startswith(begins) for one in value):
        raise _fault(field, f"{begins}…" if begins else _("a list of texts"))
    return list(value)


def _fault(field: str, wanted: str) -> ConfigurationFault:
    return ConfigurationFault(
        _("The mapping's %(field)s is missing or wrong: %(wanted)s.") % {"field": field, "wanted": wanted}
    )
