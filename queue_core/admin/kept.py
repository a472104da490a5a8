"""Rows that are never deleted, since history names them, and what their pages say to do instead."""

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ERROR_FLAG
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from queue_core.admin.explained import explained

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class KeptAdmin(ModelAdmin):
    """No delete, one by one or many at once; the page of a row says what to do instead."""

    save_as = False
    list_per_page = 50
    #: To be said anew by every page whose rows can be put out of use.
    instead_of_deleting: "StrPromise" = _("This is never deleted, since history names it.")

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """No text of the database has a NUL: a filter by one is answered as Django answers others that cannot be."""
        if any("\0" in value for values in request.GET.lists() for value in values[1]):
            return HttpResponseRedirect(f"{request.path}?{ERROR_FLAG}=1")
        return super().changelist_view(request, extra_context)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """An address that somebody kept or guessed: a sentence and the row's page, where it may be seen."""
        row = self.get_object(request, object_id)
        if self.has_delete_permission(request, row):
            return super().delete_view(request, object_id, extra_context)
        if row is None or not self.has_view_permission(request, row):
            raise PermissionDenied
        self.message_user(request, self.instead_of_deleting, messages.ERROR)
        place = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
        return HttpResponseRedirect(reverse(place, args=[row.pk]))

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: models.Model | None = None,
    ) -> Any:
        if obj is not None and not self.has_delete_permission(request, obj):
            context["instead_of_deleting"] = self.instead_of_deleting
        return super().render_change_form(request, context, add, change, form_url, obj)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return super().formfield_for_dbfield(db_field, request, **{"help_text": explained(db_field), **kwargs})
