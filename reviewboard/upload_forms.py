"""The forms of an import: the file, and how it is to be read."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.imports import RIGHT, Settings
from queue_core.models import ImportRun, Lane
from queue_core.rights import on_lanes_of
from queue_core.ticket_csv import EVIDENCE_PART, REFUSED_COLUMNS, Header
from queue_core.ticket_fields import FIELDS, MAX_NAME
from queue_core.ticket_formats import FileKind
from reviewboard.models import Person

#: Those that spreadsheets of our readers' languages write. Others go in by `import_tickets --encoding`.
ENCODINGS = [
    ("", gettext_lazy("by its byte-order mark, else UTF-8")),
    ("utf-8", "UTF-8"),
    ("cp1252", "Windows-1252"),
    ("gb18030", "GB 18030"),
    ("big5", "Big5"),
    ("shift_jis", "Shift JIS"),
]
KINDS = [
    ("", gettext_lazy("by its name")),
    (FileKind.NDJSON.value, gettext_lazy("NDJSON, one JSON object a line")),
    (FileKind.CSV.value, gettext_lazy("CSV with a header")),
]
DELIMITERS = [
    ("", gettext_lazy("the one that fits the header")),
    (",", gettext_lazy("comma")),
    (";", gettext_lazy("semicolon")),
    ("\t", gettext_lazy("tab")),
    ("|", gettext_lazy("bar")),
]


def source_field() -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Source"),
        max_length=MAX_NAME,
        initial="import",
        help_text=gettext_lazy("Where the ids are unique, for lines that name no source."),
    )


class UploadForm(forms.Form):
    file = forms.FileField(label=gettext_lazy("File"), max_length=1000)
    source = source_field()
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=KINDS, required=False)
    encoding = forms.ChoiceField(label=gettext_lazy("Encoding"), choices=ENCODINGS, required=False)


class DelimiterForm(forms.Form):
    """Reads the header anew. A GET form of its own, since the columns of the other one depend on it."""

    delimiter = forms.ChoiceField(label=gettext_lazy("Delimiter"), choices=DELIMITERS, required=False)


class SettingsForm(forms.Form):
    """What lines that name none get, and for CSV what each column is."""

    source = source_field()
    lane = forms.ModelChoiceField(
        Lane.objects.none(),
        label=gettext_lazy("Lane"),
        to_field_name="name",
        required=False,
        empty_label=gettext_lazy("the one that each line names"),
        help_text=gettext_lazy("For lines that name no lane."),
    )
    revision = forms.CharField(
        label=gettext_lazy("Revision"),
        max_length=MAX_NAME,
        required=False,
        help_text=gettext_lazy("For lines that name no revision. Empty: each line has to name one."),
    )
    delimiter = forms.CharField(widget=forms.HiddenInput, required=False, max_length=1, strip=False)

    def __init__(self, *args: Any, person: Person, run: ImportRun, header: Header | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lanes = on_lanes_of(Lane.objects.order_by("name"), person, RIGHT, field="pk")
        lane_field = self.fields["lane"]
        assert isinstance(lane_field, forms.ModelChoiceField)
        lane_field.queryset = lanes
        self.initial.update(source=run.source, lane=run.lane, revision=run.revision)
        self._columns: list[tuple[str, str]] = []
        if header is not None:
            self.initial["delimiter"] = header.delimiter
            self._add_columns(header, run.mapping)

    def _add_columns(self, header: Header, mapping: dict[str, str]) -> None:
        for place, name in enumerate(header.names):
            if name in REFUSED_COLUMNS:
                continue
            field = f"column_{place}"
            self._columns.append((field, name))
            self.fields[field] = forms.ChoiceField(
                label=name, choices=_targets(name), required=False, initial=mapping.get(name, _guess(name))
            )

    @property
    def columns(self) -> Iterable[forms.BoundField]:
        return [self[field] for field, _name in self._columns]

    @property
    def others(self) -> Iterable[forms.BoundField]:
        return [self[field] for field in ("source", "lane", "revision")]

    def settings(self) -> Settings:
        """What the form says. It is valid."""
        data = self.cleaned_data
        return Settings(
            source=data["source"],
            lane=data["lane"],
            revision=data["revision"],
            delimiter=data["delimiter"],
            mapping={name: data[field] for field, name in self._columns},
        )


def _targets(name: str) -> list[tuple[str, str]]:
    part = f"evidence.{name}"
    known = sorted(FIELDS - {"evidence"})
    return [
        ("", _("leave it out")),
        ("evidence", _("evidence: its text")),
        *([(part, _("evidence: a part of this name"))] if EVIDENCE_PART.fullmatch(part) else []),
        *((field, field) for field in known),
    ]


def _guess(name: str) -> str:
    """A column that has our own name is that. Nothing else is guessed: a wrong guess would go in unseen."""
    return name if name in FIELDS else ""
