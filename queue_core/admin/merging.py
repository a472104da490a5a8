"""Forms of which each save writes what its writer changed, and nothing that somebody else changed meanwhile (ADM-01).

A form carries the values that it was loaded with. At the save the row is locked: a field that only its writer changed
is written, one that only somebody else changed stays as it is now, and one that both changed is told with who set it
to what. What was typed stands in the form still, and a second save of it is one that knows what it replaces.
"""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db import models
from django.utils.translation import gettext as _

from queue_core import configuration
from queue_core.models import AuditEntry

if TYPE_CHECKING:
    from django.http import QueryDict

    ModelForm = forms.ModelForm[models.Model]
else:
    ModelForm = forms.ModelForm

#: The hidden field of a form that holds what it was loaded with.
LOADED = "loaded"
#: Of a row's latest entries in the audit, so many are asked for who set a field.
MOST_ASKED = 20


class LoadedField(forms.CharField):
    """Says what its form was loaded with, and is nothing that anybody changes."""

    widget = forms.HiddenInput

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class MergingForm(ModelForm):
    """A form of a row that others may save meanwhile. Its save runs in a transaction, as all of Django's admin do."""

    loaded = LoadedField(required=False)
    #: Fields that stand in the audit under another name.
    audited_as: ClassVar[dict[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: What stood in the edited fields, under the lock, before they were written.
        self.before: dict[str, Any] = {}
        #: The fields that somebody else changed meanwhile, and that stay as they are now.
        self.kept: list[str] = []
        self._settled: set[str] = set()
        self._loaded: dict[str, Any] | None = None
        if not self.instance.pk or LOADED not in self.fields:
            return
        self.fields[LOADED].initial = self._written(self.stored(self.instance))
        if self.is_bound:
            self._loaded = self._read()
            known = self._loaded or {}
            # What a field is compared with to tell whether the writer of this form changed it.
            self.initial = {
                **self.initial,
                **{name: self.restored(name, known[name]) for name in self.compared() if name in known},
            }

    def compared(self) -> list[str]:
        """The fields of the form that are the row's own. What it may not change is not sent along, nor is a secret."""
        return [name for name, field in self.fields.items() if self._column(name) is not None and not field.disabled]

    def stored(self, row: models.Model) -> dict[str, Any]:
        """The compared fields of a row as JSON that keeps them whole."""
        columns = ((name, self._column(name)) for name in self.compared())
        return {name: _text_of(column, row) for name, column in columns if column is not None}

    def restored(self, name: str, value: Any) -> Any:
        """What `stored` wrote of a field, as the form has its initial values."""
        column = self._column(name)
        return value if column is None or value is None else column.to_python(value)

    def current(self, row: models.Model, name: str) -> Any:
        """A field of the row as the form's cleaned data have it."""
        return getattr(row, name)

    def lock(self) -> models.Model:
        """The row as it is now, until the save."""
        return type(self.instance)._default_manager.select_for_update(no_key=True).get(pk=self.instance.pk)

    def edited(self) -> list[str]:
        """The row's own fields that a save writes."""
        return [name for name in self.compared() if name in self.changed_data and name not in self._settled]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.instance.pk or LOADED not in self.fields:
            return cleaned
        row = self.lock()
        if self._loaded is None:
            self.add_error(None, _("This form is not as the page had it. Nothing was saved; load the page anew."))
            return cleaned
        self._merge(row, cleaned)
        self.before = configuration.values_of(row, [name for name in self.edited() if self._column(name) is not None])
        return cleaned

    def _merge(self, row: models.Model, cleaned: dict[str, Any]) -> None:
        loaded, now = self._loaded or {}, self.stored(row)
        theirs = [name for name in now if name not in loaded or now[name] != loaded[name]]
        mine = set(self.changed_data)
        for name in theirs:
            if name not in mine:
                self.kept.append(name)
                cleaned[name] = self.current(row, name)
            elif not self.fields[name].has_changed(self.restored(name, now[name]), self[name].data):
                self._settled.add(name)
        self._tell([name for name in theirs if name in mine - self._settled], row, now)

    def _tell(self, conflicts: list[str], row: models.Model, now: dict[str, Any]) -> None:
        if not conflicts:
            return
        self.add_error(
            None,
            _(
                "Somebody else saved this meanwhile, and nothing of yours was saved. What you both changed is marked "
                "below with what it is now. What you wrote still stands here: save once more to put it in its place."
            ),
        )
        who = _who_set(row, {self.audited_as.get(name, name) for name in conflicts})
        for name in conflicts:
            shown = {"theirs": self._shown(name, self.restored(name, now[name])), "mine": self._mine(name)}
            by = who.get(self.audited_as.get(name, name))
            said = _("It is now “%(theirs)s”; you wrote “%(mine)s”.")
            if by is not None:
                said = _("It is now “%(theirs)s”, set by %(who)s; you wrote “%(mine)s”.")
            # A field in error leaves the cleaned data, and the checks of several fields go without it.
            self.add_error(name, said % {**shown, "who": by})
        written = self._written((self._loaded or {}) | {name: now[name] for name in conflicts})
        sent = cast("QueryDict", self.data).copy()
        sent[self.add_prefix(LOADED)] = written
        self.data = sent

    def _mine(self, name: str) -> str:
        value = self[name].data
        return self._shown(name, self.fields[name].to_python(value) if isinstance(value, list) else value)

    def _shown(self, name: str, value: Any) -> str:
        """A value as the field itself shows it: a choice by its name, a length as it is typed."""
        field = self.fields[name]
        if isinstance(field, forms.BooleanField):
            return _("yes") if field.to_python(value) else _("no")
        if isinstance(field, forms.ChoiceField | forms.ModelChoiceField):
            chosen = value if isinstance(value, list | tuple) else [value]
            labels = {str(key): str(label) for key, label in _flat(cast("Iterable[Any]", field.choices))}
            return ", ".join(labels.get(str(one), str(one)) for one in chosen if one not in (None, ""))
        shown = field.prepare_value(value)
        return "" if shown is None else str(shown)

    def _column(self, name: str) -> "models.Field[Any, Any] | None":
        try:
            found = self._meta.model._meta.get_field(name)
        except FieldDoesNotExist:
            return None
        return found if isinstance(found, models.Field) and found.concrete and not found.many_to_many else None

    def _read(self) -> dict[str, Any] | None:
        """What the form says it was loaded with; None where that is nothing a page of ours wrote."""
        try:
            read = json.loads(self.data.get(self.add_prefix(LOADED)) or "")
            {name: self.restored(name, value) for name, value in read.items()}
        except (ValueError, TypeError, AttributeError, ValidationError):
            return None
        return read if isinstance(read, dict) and set(self.compared()) <= read.keys() else None

    @staticmethod
    def _written(values: dict[str, Any]) -> str:
        return json.dumps(values, ensure_ascii=False, sort_keys=True)


def _text_of(column: "models.Field[Any, Any]", row: models.Model) -> Any:
    # The text of nothing would read "None".
    return None if column.value_from_object(row) is None else column.value_to_string(row)


def _flat(choices: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    for key, label in choices:
        if isinstance(label, list | tuple):
            yield from label
        else:
            yield key, label


def _who_set(row: models.Model, names: Iterable[str]) -> dict[str, str]:
    """Who last set each field, where one of the row's latest acts says so."""
    entries = AuditEntry.objects.filter(subject_type=row._meta.model_name, subject_id=str(row.pk)).order_by("-pk")
    found: dict[str, str] = {}
    for actor_name, after in entries.values_list("actor_name", "after")[:MOST_ASKED]:
        for name in names:
            if name in (after or {}):
                found.setdefault(name, actor_name)
    return found
