from django.contrib import admin

from queue_core.admin.versioned import VersionedAdmin
from queue_core.models import ReasonCode


@admin.register(ReasonCode)
class ReasonCodeAdmin(VersionedAdmin):
    list_display = ["code", "title", "clause", "is_for_rejection", "is_active"]
    list_filter = ["is_active", "is_for_rejection"]
    search_fields = ["code", "title", "clause"]
    fields = ["code", "title", "clause", "public_text", "is_for_rejection", "is_active", "loaded_version"]

    def get_readonly_fields(self, request: object, obj: object = None) -> list[str]:
        # Decisions and policies name a code for ever.
        return ["code"] if obj is not None else []
