from typing import Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core import audit
from queue_core import policy as policies
from queue_core.admin.versioned import ModelAdmin, ModelForm, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import lock_lane
from queue_core.models import Lane, Policy, ReasonCode

EXAMPLE = '[{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]'


class PolicyForm(ModelForm):
    rules = forms.JSONField(
        label=gettext_lazy("Rules"),
        widget=forms.Textarea(attrs={"rows": 10, "cols": 90, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "A list of rules: at or above reject_at the ticket is REJECTED on the ground of the reason code, below "
            "approve_below nothing speaks against it, between them people decide."
        ),
    )

    class Meta:
        model = Policy
        fields = ["lane", "rules", "note"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rules"].widget.attrs.setdefault("placeholder", EXAMPLE)

    def clean_rules(self) -> Any:
        rules = self.cleaned_data["rules"]
        codes = ReasonCode.objects.filter(is_active=True).values_list("code", flat=True)
        try:
            policies.Policy.from_rules(rules, codes=frozenset(codes))
        except policies.PolicyFault as fault:
            raise forms.ValidationError(
                [f"{problem.field}: {problem.message}" for problem in fault.problems]
            ) from fault
        return rules


@admin.register(Policy)
class PolicyAdmin(ModelAdmin):
    """Versions are made here and never edited. A lead puts one into force on the lane's page, with a reason."""

    form = PolicyForm
    list_display = ["lane", "version", "made_at", "made_by", "note", "in_force"]
    list_filter = ["lane"]
    list_select_related = ["lane", "made_by"]
    readonly_fields = ["version", "made_at", "made_by"]
    actions = None

    @admin.display(boolean=True, description=gettext_lazy("in force"))
    def in_force(self, obj: Policy) -> bool:
        return obj.lane.policy_id == obj.pk

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        return ["lane", "rules", "note", *(self.readonly_fields if obj is not None else [])]

    def save_model(self, request: HttpRequest, obj: models.Model, form: Any, change: bool) -> None:
        assert isinstance(obj, Policy)
        lane = lock_lane(obj.lane_id)
        newest = Policy.objects.filter(lane=lane).order_by("-version").values_list("version", flat=True).first()
        obj.version = (newest or 0) + 1
        obj.made_at = DATABASE_CLOCK.now()
        obj.made_by_id = request.user.pk
        obj.save(force_insert=True)
        audit.record(
            "policy.made",
            now=obj.made_at,
            actor=person_of(request),
            subject=obj,
            lane=Lane.objects.get(pk=obj.lane_id),
            reason=obj.note,
            after={"version": obj.version, "rules": obj.rules},
            address=request.META.get("REMOTE_ADDR"),
        )
        self.message_user(
            request,
            _("Version %(version)d is made. It rules when a lead puts it into force.") % {"version": obj.version},
        )
