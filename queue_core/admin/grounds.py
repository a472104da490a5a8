from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from queue_core import people
from queue_core.admin.on_lanes import OnLanesForm
from queue_core.admin.versioned import VersionedAdmin
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import ReasonCode


@admin.register(ReasonCode)
class ReasonCodeAdmin(VersionedAdmin):
    """Each save is a version. What a version said is kept beside the decisions that rest on it."""

    form = OnLanesForm
    list_display = ["code", "title", "clause", "is_for_rejection", "needs_note", "needs_second_look", "is_active"]
    list_filter = ["is_active", "is_for_rejection", "needs_note", "needs_second_look"]
    search_fields = ["code", "title", "clause"]
    fields = [
        "code", "title", "clause", "public_text", "is_for_rejection", "lanes", "needs_note", "needs_second_look",
        "is_active",
    ]  # fmt: skip

    instead_of_deleting = gettext_lazy(
        "A reason code is never deleted, since decisions rest on it. Take away “In use”, and nobody chooses it."
    )

    def get_readonly_fields(self, request: object, obj: object = None) -> list[str]:
        # Decisions and policies name a code for ever.
        return ["code"] if obj is not None else []

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        super().save_new(request, obj, form)
        _keep(obj)

    def after_change(self, request: HttpRequest, obj: models.Model, fields: list[str]) -> None:
        _keep(obj)


def _keep(obj: models.Model) -> None:
    assert isinstance(obj, ReasonCode)
    people.keep_version(obj, now=DATABASE_CLOCK.now())
