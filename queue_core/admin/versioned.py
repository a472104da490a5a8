"""What every page of the admin for a row has: no delete, a save of only what was changed, an audit row of it."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import models
from django.http import HttpRequest
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import audit, configuration
from queue_core.admin.kept import KeptAdmin
from queue_core.admin.merging import LOADED, MergingForm
from queue_core.clock import DATABASE_CLOCK

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

    ModelForm = forms.ModelForm[models.Model]
else:
    ModelForm = forms.ModelForm


def person_of(request: HttpRequest) -> "AbstractUser":
    """Who acts. The admin lets nobody in who is not signed in."""
    assert request.user.is_authenticated
    return request.user


def tell_kept(request: HttpRequest, form: MergingForm) -> None:
    """What somebody else changed while the form was open, and what the save left as they set it."""
    if not form.kept:
        return
    names = get_text_list([f"“{form.fields[name].label}”" for name in form.kept], _("and"))
    text = ngettext(
        "Somebody else changed %(fields)s meanwhile: it stays as they set it.",
        "Somebody else changed %(fields)s meanwhile: they stay as they set them.",
        len(form.kept),
    )
    messages.info(request, text % {"fields": names})


class MergingAdmin(KeptAdmin):
    """Its form knows what it was loaded with, so that two who save it keep what each changed."""

    form = MergingForm

    def get_fieldsets(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        own = super().get_fieldsets(request, obj)
        if obj is None or not self.has_change_permission(request, obj):
            return own
        (title, options), *others = own
        return [(title, {**options, "fields": [*options["fields"], LOADED]}), *others]


class VersionedAdmin(MergingAdmin):
    """No delete, no save-as, no list editing; every save through `configuration`, with an audit row."""

    actions = None
    show_full_result_count = False

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        now = DATABASE_CLOCK.now()
        if not change:
            self.save_new(request, obj, form)
            return
        tell_kept(request, form)
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
