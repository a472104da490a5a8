"""Keys of machines. A key is shown once, on the page that made it, and is in no form."""

from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core import api_keys
from queue_core.admin.on_lanes import OnLanesForm
from queue_core.admin.versioned import VersionedAdmin, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import ApiKey
from queue_core.models.api_keys import KeyScope


class ApiKeyForm(OnLanesForm):
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=KeyScope.choices,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Give the fewest that the machine needs. A change counts from its next call on."),
    )

    class Meta:
        model = ApiKey
        fields = ["name", "scopes", "source", "lanes", "rate", "expires_at"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors:
            self._check(cleaned)
        return cleaned

    def _check(self, cleaned: dict[str, Any]) -> None:
        """Told at the field, before anything is stored. The verb asks again."""
        try:
            api_keys.check_terms(cleaned["scopes"], source=cleaned["source"], lanes=cleaned["lanes"])
        except InvalidRequest as fault:
            self.add_error(fault.field, str(fault))
        expires_at = cleaned.get("expires_at")
        if expires_at is not None and "expires_at" in self.changed_data and expires_at <= DATABASE_CLOCK.now():
            self.add_error("expires_at", _("The key would have expired already."))


class RevokeForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=api_keys.MOST_REASON,
        required=False,
        help_text=gettext_lazy("It stands in the audit."),
    )


class StateFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [
            ("usable", gettext_lazy("usable")),
            ("expired", gettext_lazy("expired")),
            ("revoked", gettext_lazy("revoked")),
        ]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        over = models.Q(expires_at__lte=DATABASE_CLOCK.now())
        is_revoked = models.Q(revoked_at__isnull=False)
        asked = {"usable": ~is_revoked & ~over, "expired": ~is_revoked & over, "revoked": is_revoked}
        return queryset.filter(asked.get(self.value() or "", models.Q()))


@admin.register(ApiKey)
class ApiKeyAdmin(VersionedAdmin):
    form = ApiKeyForm
    list_display = ["name", "prefix", "what_for", "source", "expires_at", "revoked_at", "last_used_at"]
    list_filter = [StateFilter]
    list_select_related = ["use"]
    search_fields = ["name", "prefix", "source"]
    readonly_fields = ["prefix", "last_used_at", "last_address", "made_at", "made_by", "revoked_at", "revoked_by"]
    fields = ["name", "scopes", "source", "lanes", "rate", "expires_at", *readonly_fields]
    instead_of_deleting = gettext_lazy("A key is never deleted, since the audit names it. Revoke it.")
    change_form_template = "admin/queue_core/apikey/change_form.html"

    @admin.display(description=gettext_lazy("scopes"))
    def what_for(self, key: ApiKey) -> str:
        return " · ".join(key.scopes)

    @admin.display(description=gettext_lazy("last used"), ordering="use__last_used_at")
    def last_used_at(self, key: ApiKey) -> Any:
        return key.use.last_used_at or "–"

    @admin.display(description=gettext_lazy("last used from"))
    def last_address(self, key: ApiKey) -> Any:
        return key.use.last_address or "–"

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        """A key that is being made has nothing to show yet."""
        return self.fields if obj is not None else [one for one in self.fields or () if one not in self.readonly_fields]

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        # What it was stays to be read.
        is_over = isinstance(obj, ApiKey) and obj.revoked_at is not None
        return not is_over and super().has_change_permission(request, obj)

    def get_urls(self) -> list[URLPattern]:
        own = path("<int:pk>/revoke/", self.admin_site.admin_view(self.revoke), name="queue_core_apikey_revoke")
        return [own, *super().get_urls()]

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        assert isinstance(obj, ApiKey)
        request.secret = api_keys.make(obj, person=person_of(request), clock=DATABASE_CLOCK)  # type: ignore[attr-defined]

    def response_add(
        self, request: HttpRequest, obj: models.Model, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._page(request, obj, secret=request.secret)  # type: ignore[attr-defined]

    def revoke(self, request: HttpRequest, pk: int) -> HttpResponse:
        key = get_object_or_404(ApiKey, pk=pk)
        if not super().has_change_permission(request, key):
            raise PermissionDenied
        form = RevokeForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, key, form=form)
        reason = form.cleaned_data["reason"]
        is_new = api_keys.revoke(pk, person=person_of(request), reason=reason, clock=DATABASE_CLOCK)
        said = _("The key %(name)s is revoked.") if is_new else _("The key %(name)s was revoked before.")
        self.message_user(request, said % {"name": key.name})
        return HttpResponseRedirect(reverse("admin:queue_core_apikey_change", args=[pk]))

    def _page(self, request: HttpRequest, key: models.Model, **context: Any) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "opts": self.opts, "key": key, **context}
        return TemplateResponse(request, "admin/queue_core/apikey/key.html", shown)
