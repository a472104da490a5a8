from typing import Any

from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from queue_core.admin.kept import KeptAdmin
from queue_core.admin.versioned import VersionedAdmin
from queue_core.models import KnownAnswer, KnownReply


@admin.register(KnownAnswer)
class KnownAnswerAdmin(VersionedAdmin):
    """Never deleted: replies name it for ever. One that is no longer in use is not sent."""

    list_display = ["title", "lane", "expected", "is_active"]
    list_filter = ["lane", "expected", "is_active"]
    list_select_related = ["lane"]
    search_fields = ["title", "text"]
    instead_of_deleting = gettext_lazy(
        "A known answer is never deleted, since replies name it. Take away “In use”, and it is not sent any more."
    )
    fields = ["lane", "title", "text", "expected", "is_active"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # Its replies are the lane's.
        return ["lane"] if obj is not None else []


@admin.register(KnownReply)
class KnownReplyAdmin(KeptAdmin):
    """What the models answered: to look at, not to touch."""

    list_display = ["asked_at", "known", "lane", "stage", "expected", "result", "right", "outcome", "latency", "model"]
    list_filter = ["lane", "outcome", "result", "asked_at"]
    search_fields = ["known__title", "model"]
    list_select_related = ["known", "lane", "run"]
    ordering = ["-asked_at", "-pk"]
    show_full_result_count = False
    actions = None

    @admin.display(description=gettext_lazy("stage"))
    def stage(self, obj: KnownReply) -> str:
        return f"{obj.run.number} {obj.run.name}"

    @admin.display(boolean=True, description=gettext_lazy("right"))
    def right(self, obj: KnownReply) -> bool | None:
        return obj.is_right

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return request.user.has_perm("queue_core.view_knownanswer")
