"""Forms that do not undo what somebody else saved meanwhile (ADM-01).

Each form carries the version of the row it was loaded with. At the save the row is locked, and another version is a
conflict told field by field: theirs and mine. Only the fields that were changed are written.
"""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _

from queue_core import configuration
from queue_core.clock import DATABASE_CLOCK

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

    ModelForm = forms.ModelForm[models.Model]
    ModelAdmin = admin.ModelAdmin[models.Model]
else:
    ModelForm = forms.ModelForm
    ModelAdmin = admin.ModelAdmin


def person_of(request: HttpRequest) -> "AbstractUser":
    """Who acts. The admin lets nobody in who is not signed in."""
    assert request.user.is_authenticated
    return request.user


class VersionedForm(ModelForm):
    """Checks the hidden version against the row as it is now, under its lock."""

    loaded_version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.before: dict[str, Any] = {}
        if self.instance.pk:
            self.fields["loaded_version"].initial = getattr(self.instance, "version", None)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance.pk:
            # Django's admin runs its change view in a transaction: the lock lasts until the save.
            row = type(self.instance)._default_manager.select_for_update(no_key=True).get(pk=self.instance.pk)
            self.before = configuration.values_of(row, self.edited())
            if getattr(row, "version", None) != cleaned.get("loaded_version"):
                self._tell_conflict(row)
        return cleaned

    def edited(self) -> list[str]:
        """The changed fields that are the row's own."""
        return [name for name in self.changed_data if name != "loaded_version"]

    def _tell_conflict(self, row: models.Model) -> None:
        theirs = configuration.values_of(row, self.edited())
        self.add_error(None, _("Somebody else saved this meanwhile. Nothing of yours was saved; load the page anew."))
        for name, value in theirs.items():
            self.add_error(
                name,
                _("It is now “%(theirs)s”; you wrote “%(mine)s”.")
                % {"theirs": value, "mine": self.cleaned_data.get(name, "")},
            )


class VersionedAdmin(ModelAdmin):
    """No delete, no save-as, no list editing; every save through `configuration`, with an audit row."""

    form = VersionedForm
    actions = None
    save_as = False
    list_per_page = 50
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        now = DATABASE_CLOCK.now()
        if not change:
            self.save_new(request, obj, form)
            return
        fields = form.edited()
        if fields:
            configuration.save_changed(
                obj,
                fields,
                before=form.before,
                person=person_of(request),
                now=now,
                address=request.META.get("REMOTE_ADDR"),
            )
            self.after_change(request, obj, fields)

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        """How a new row is made; the plain way unless the row needs more than itself."""
        from queue_core import audit

        obj.save()
        audit.record(
            f"{obj._meta.model_name}.added",
            now=DATABASE_CLOCK.now(),
            actor=person_of(request),
            subject=obj,
            after=configuration.values_of(obj, form.edited()),
            address=request.META.get("REMOTE_ADDR"),
        )

    def after_change(self, request: HttpRequest, obj: models.Model, fields: list[str]) -> None:
        """What a change of these fields entails, in the same transaction."""
