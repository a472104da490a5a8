"""Who is told of what: settings of a lane, mail for a person, webhooks."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from queue_core import audit, configuration
from queue_core.admin.merging import MergingForm
from queue_core.admin.versioned import VersionedAdmin, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.models import AlertHook, AlertSettings, AlertSubscription
from queue_core.states import AlertKind


class KindsForm(MergingForm):
    """Kinds as boxes to tick, stored as a list in their own order."""

    kinds = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Alerts"),
        help_text=gettext_lazy("What is not chosen is not told here. None chosen: nothing is."),
        choices=AlertKind.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        empty_value=[],
    )

    def clean_kinds(self) -> list[str]:
        chosen = self.cleaned_data["kinds"]
        return [kind for kind in AlertKind.values if kind in chosen]


class HookForm(KindsForm):
    def clean_address(self) -> str:
        from queue_core.relay.addresses import check_address

        address: str = self.cleaned_data["address"]
        try:
            check_address(address)
        except InvalidRequest as fault:
            raise forms.ValidationError(str(fault)) from fault
        return address

    def clean_secret_env(self) -> str:
        name: str = self.cleaned_data["secret_env"]
        if not name.isidentifier():
            raise forms.ValidationError(
                gettext_lazy("The name of a variable: letters, digits and _. The secret itself is never stored.")
            )
        return name


@admin.register(AlertSettings)
class AlertSettingsAdmin(VersionedAdmin):
    form = KindsForm
    list_display = ["lane", "number", "least_passing"]
    list_filter = ["lane__connection"]
    search_fields = ["lane__name", "lane__title"]
    instead_of_deleting = gettext_lazy("This is never deleted. Choose every alert: so is a lane without it.")
    fields = ["lane", "kinds", "least_passing"]

    @admin.display(description=gettext_lazy("alerts"))
    def number(self, obj: AlertSettings) -> str:
        return _of_all(obj.kinds)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("lane")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["lane"] if obj is not None else []


@admin.register(AlertSubscription)
class AlertSubscriptionAdmin(VersionedAdmin):
    form = KindsForm
    list_display = ["person", "lane", "number"]
    list_filter = ["lane"]
    search_fields = ["person__username", "person__email", "lane__name"]
    fields = ["person", "lane", "kinds"]

    @admin.display(description=gettext_lazy("alerts"))
    def number(self, obj: AlertSubscription) -> str:
        return _of_all(obj.kinds)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("person", "lane")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["person", "lane"] if obj is not None else []

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        # Back to the usual: without a row a lead gets everything, and others nothing.
        return request.user.has_perm("queue_core.delete_alertsubscription")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        audit.record(
            "alertsubscription.removed",
            now=DATABASE_CLOCK.now(),
            actor=person_of(request),
            subject=obj,
            before=configuration.values_of(obj, ["person", "lane", "kinds"]),
            address=request.META.get("REMOTE_ADDR"),
        )
        super().delete_model(request, obj)


@admin.register(AlertHook)
class AlertHookAdmin(VersionedAdmin):
    form = HookForm
    list_display = ["name", "address", "lane", "number", "is_enabled"]
    list_filter = ["is_enabled", "lane"]
    list_select_related = ["lane"]
    search_fields = ["name", "address"]
    instead_of_deleting = gettext_lazy("A webhook is never deleted, since its notices name it. Take away “Enabled”.")
    fields = ["name", "address", "secret_env", "lane", "kinds", "is_enabled"]

    @admin.display(description=gettext_lazy("alerts"))
    def number(self, obj: AlertHook) -> str:
        return _of_all(obj.kinds)


def _of_all(kinds: list[str]) -> str:
    return f"{len(kinds)}/{len(AlertKind)}"
