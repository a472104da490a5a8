from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core import configuration, lanes
from queue_core.admin.connections import hold_lanes
from queue_core.admin.durations import refuse_boundless
from queue_core.admin.explained import explained
from queue_core.admin.merging import LOADED, MergingForm
from queue_core.admin.versioned import VersionedAdmin, person_of, tell_kept
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import CALL_MARGIN
from queue_core.models import Lane, Stage

if TYPE_CHECKING:
    StageInlineBase = admin.StackedInline[Stage, Lane]
    StageFormSet = forms.BaseInlineFormSet[Stage, Lane, forms.ModelForm[Stage]]
else:
    StageInlineBase = admin.StackedInline
    StageFormSet = forms.BaseInlineFormSet


class LaneForm(MergingForm):
    class Meta:
        model = Lane
        exclude = ["policy", "run", "hold", "cap", "judged_at", "usual_call_time", "claims_not_before"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        refuse_boundless(self)
        connection, lease = cleaned.get("connection"), cleaned.get("lease")
        if connection is not None and isinstance(lease, timedelta):
            least = connection.call_time_limit + CALL_MARGIN
            if lease < least:
                self.add_error(
                    "lease",
                    _("A lease is at least %(least).1f s here: the connection's call time limit and a margin.")
                    % {"least": least.total_seconds()},
                )
        return cleaned


class StageForm(MergingForm):
    """A stage as its own row: two people change different fields of it, or different stages, and both are kept."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        refuse_boundless(self)
        return cleaned

    def has_changed(self) -> bool:
        """A new lane's form comes with the usual plan: what was left as it came is a stage too, if it has a number."""
        if self.is_bound and not self.instance.pk:
            return bool(self.data.get(self.add_prefix("number")))
        return super().has_changed()


class Stages(StageFormSet):
    """The plan is numbered from the probe without a gap, and no stage lets through less than the one before."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        lane = kwargs.get("instance")
        if lane is None or lane.pk is None:
            kwargs["initial"] = [asdict(stage) for stage in lanes.DEFAULT_STAGES]
        super().__init__(*args, **kwargs)

    def clean(self) -> None:
        super().clean()
        if any(form.instance.pk is None for form in self.initial_forms):
            raise forms.ValidationError(_("Somebody else removed a stage meanwhile. Load the page anew."))
        plan = sorted(self._written() + self._added_meanwhile())
        if [number for number, _cap in plan] != list(range(1, len(plan) + 1)):
            raise forms.ValidationError(_("Stages are numbered 1, 2, 3, … without a gap; stage 1 is the probe."))
        if [cap for _number, cap in plan] != sorted(cap for _number, cap in plan):
            raise forms.ValidationError(_("A later stage has at least the cap of the one before."))
        for form in self.forms:
            if form.is_valid() and form.cleaned_data.get("max_disagreement") is not None:
                _check_that_some_are_checked(form)

    def _written(self) -> list[tuple[int, int]]:
        return [
            (form.cleaned_data["number"], form.cleaned_data["cap"])
            for form in self.forms
            if form.is_valid() and form.cleaned_data.get("number") and not form.cleaned_data.get("DELETE")
        ]

    def _added_meanwhile(self) -> list[tuple[int, int]]:
        """Stages of the plan that this form was loaded without."""
        known = [form.instance.pk for form in self.initial_forms]
        return list(Stage.objects.filter(lane_id=self.instance.pk).exclude(pk__in=known).values_list("number", "cap"))


def _check_that_some_are_checked(form: "forms.ModelForm[Stage]") -> None:
    """A limit for what nobody looks at would keep the stage inconclusive for ever."""
    if not form.cleaned_data.get("blind_share"):
        form.add_error("blind_share", _("Disagreement is judged by blind checks: say which share is checked."))


class StageInline(StageInlineBase):
    model = Stage
    form = StageForm  # type: ignore[assignment]  # of a row of any model
    formset = Stages
    min_num = 1
    max_num = 20
    verbose_name_plural = gettext_lazy("stages (editing the plan never lifts a cap that runs)")
    fieldsets = [
        (
            None,
            {
                "fields": [
                    ("number", "name"), ("cap", "rate"), ("soak_completions", "soak_time"), "keeps_back", LOADED,
                ]
            },
        ),
        (
            gettext_lazy("Does it answer?"),
            {
                "fields": [
                    ("window", "least_sample"), ("max_error_ratio", "max_timeout_ratio"),
                    ("max_stale_ratio", "max_latency"),
                ]
            },
        ),
        (
            gettext_lazy("Does it answer rightly?"),
            {
                "fields": [
                    "max_share_shift", ("max_wrong_ratio", "known_every"),
                    ("blind_share", "least_blind", "max_disagreement"),
                ]
            },
        ),
    ]  # fmt: skip

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return super().formfield_for_dbfield(db_field, request, **{"help_text": explained(db_field), **kwargs})

    def get_extra(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        return 0 if obj is not None else len(lanes.DEFAULT_STAGES) - 1


class HoldFilter(admin.SimpleListFilter):
    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("running", gettext_lazy("running")), ("hold", gettext_lazy("on hold"))]

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        asked = self.value()
        return queryset if asked is None else queryset.filter(run__isnull=asked == "hold")


@admin.register(Lane)
class LaneAdmin(VersionedAdmin):
    form = LaneForm
    inlines = [StageInline]
    list_display = ["name", "title", "connection", "state", "cap", "max_attempts", "wait_target"]
    list_filter = ["connection", HoldFilter, "two_person_rule"]
    search_fields = ["name", "title"]
    instead_of_deleting = gettext_lazy(
        "A lane is never deleted, since tickets, decisions and the audit name it. Put it on hold, and send it nothing."
    )
    readonly_fields = ["state", "in_force", "cap"]
    fieldsets = [
        (None, {"fields": ["name", "title", "connection", "state", "in_force", "cap"]}),
        (
            gettext_lazy("Leases and attempts"),
            {
                "fields": [
                    "lease", "max_hold", "max_attempts", "drainers", "backoff_base", "backoff_cap",
                    "unavailable_limit", "retry_after_limit", "least_call_time",
                ]
            },
        ),
        (gettext_lazy("Order"), {"fields": ["urgency_weight", "severity_bonus"]}),
        (
            gettext_lazy("Targets and people"),
            {
                "fields": [
                    "wait_target", "desk_items_per_hour", "assignment_time", "most_held", "second_look_share",
                ]
            },
        ),
        (
            gettext_lazy("What a ticket has when nothing else is sent"),
            {
                "fields": [
                    "deadline_default", "severity_default", "source_kind_default", "exposure_default",
                    "deadline_kind_default",
                ]
            },
        ),
        (gettext_lazy("Safety"), {"fields": ["model_sees_urgent_first", "two_person_rule"]}),
    ]  # fmt: skip

    @admin.display(description=gettext_lazy("state"))
    def state(self, obj: Lane) -> str:
        if obj.run is None:
            return _("on hold")
        return _("running stage %(number)d") % {"number": obj.run.number}

    @admin.display(description=gettext_lazy("policy"))
    def in_force(self, obj: Lane) -> str:
        if obj.policy is None:
            return _("none: a lead puts one into force on the lane's page")
        return _("version %(number)d") % {"number": obj.policy.version}

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).select_related("run", "connection", "policy")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # The name is in addresses, messages and import files.
        return [*self.readonly_fields, *(["name"] if obj is not None else [])]

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        assert isinstance(obj, Lane)
        obj.save()
        lanes.adopt(obj, person=person_of(request), now=DATABASE_CLOCK.now())
        self.message_user(request, _next_step(obj))

    def after_change(self, request: HttpRequest, obj: models.Model, fields: list[str]) -> None:
        hold_lanes(request, obj, fields)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """A change of the plan is a change of the lane: it takes the lane's next version and an audit row."""
        lane: Lane = form.instance
        before = plan_of(lane)
        formset.save()
        after = plan_of(lane)
        for stage_form in formset.initial_forms:
            tell_kept(request, stage_form)
        if change and before != after:
            configuration.save_plan(
                lane, before=before, after=after, person=person_of(request), now=DATABASE_CLOCK.now()
            )


def _next_step(lane: Lane) -> str:
    """What a new lane still needs. It is on hold, so nothing of it is sent before somebody has read the rules."""
    if lane.policy is not None:
        return _(
            "It is on hold, with the usual policy of its connection as version 1. Read it on the lane's page; "
            "a lead starts the probe there."
        )
    return _("It is on hold and has no policy: make a version under Policies. A lead puts it into force, then probes.")


def plan_of(lane: Lane) -> list[dict[str, Any]]:
    names = [field.name for field in Stage._meta.concrete_fields if field.name not in ("id", "lane")]
    return [configuration.values_of(stage, names) for stage in Stage.objects.filter(lane=lane).order_by("number")]
