"""Endpoints: where messages go. Secrets are shown once, on a page of their own, and are in no form."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext_lazy

from queue_core import relay
from queue_core.admin.on_lanes import OnLanesForm
from queue_core.admin.versioned import VersionedAdmin, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import Endpoint
from queue_core.states import MessageKind

KINDS = [(kind.value, kind.label) for kind in MessageKind if kind != MessageKind.TEST]
ROTATIONS = [
    ("86400", gettext_lazy("24 hours")),
    ("3600", gettext_lazy("1 hour")),
    ("604800", gettext_lazy("7 days")),
    ("0", gettext_lazy("not at all: it leaked")),
]


class EndpointForm(OnLanesForm):
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Messages"),
        choices=KINDS,
        widget=forms.CheckboxSelectMultiple,
        initial=["decision"],
        help_text=gettext_lazy(
            "A new endpoint gets what happens from now on, and nothing of before. What was decided before is read from "
            "the API (GET /api/v1/decisions), from the first one on or from any number."
        ),
    )

    class Meta:
        model = Endpoint
        fields = ["name", "address", "kinds", "lanes", "time_limit", "parallel", "max_tries"]

    def clean_address(self) -> str:
        """Refused here and again at each try: a name may lead elsewhere by then."""
        address: str = self.cleaned_data["address"]
        if "address" in self.changed_data:
            try:
                relay.check_address(address)
            except InvalidRequest as fault:
                raise forms.ValidationError(str(fault)) from fault
        return address


class RotationForm(forms.Form):
    old_signs_for = forms.TypedChoiceField(
        label=gettext_lazy("The secret before it signs on for"),
        choices=ROTATIONS,
        coerce=lambda seconds: timedelta(seconds=int(seconds)),
        help_text=gettext_lazy(
            "Each message carries both signatures until then, so that the consumer can change over."
        ),
    )


@admin.register(Endpoint)
class EndpointAdmin(VersionedAdmin):
    form = EndpointForm
    list_display = ["name", "address", "state", "failing_since", "last_delivered_at"]
    list_filter = ["state"]
    search_fields = ["name", "address"]
    readonly_fields = ["state", "failing_since", "last_delivered_at"]
    fields = [
        "name", "address", "kinds", "lanes", "time_limit", "parallel", "max_tries", *readonly_fields,
    ]  # fmt: skip
    instead_of_deleting = gettext_lazy(
        "An endpoint is never deleted, since deliveries name it. Retire it on the page of deliveries."
    )
    change_form_template = "admin/queue_core/endpoint/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        own = path(
            "<int:pk>/new-secret/", self.admin_site.admin_view(self.new_secret), name="queue_core_endpoint_new_secret"
        )
        return [own, *super().get_urls()]

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        assert isinstance(obj, Endpoint)
        obj.created_at = DATABASE_CLOCK.now()
        super().save_new(request, obj, form)

    def response_add(
        self, request: HttpRequest, obj: models.Model, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The first secret, in the transaction that made the endpoint: without one nothing could be sent to it."""
        assert isinstance(obj, Endpoint)
        secret = relay.new_secret(obj.pk, person=person_of(request), clock=DATABASE_CLOCK)
        return self._page(request, obj, secret=secret)

    def new_secret(self, request: HttpRequest, pk: int) -> HttpResponse:
        endpoint = get_object_or_404(Endpoint, pk=pk)
        if not self.has_change_permission(request, endpoint):
            raise PermissionDenied
        form = RotationForm(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, endpoint, form=form)
        secret = relay.new_secret(
            pk, person=person_of(request), clock=DATABASE_CLOCK, old_signs_for=form.cleaned_data["old_signs_for"]
        )
        return self._page(request, endpoint, secret=secret)

    def _page(self, request: HttpRequest, endpoint: Endpoint, **context: Any) -> HttpResponse:
        shown = {**self.admin_site.each_context(request), "opts": self.opts, "endpoint": endpoint, **context}
        return TemplateResponse(request, "admin/queue_core/endpoint/secret.html", shown)
