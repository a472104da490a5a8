import json
from typing import Any, cast

from django import forms
from django.contrib import admin
from django.contrib.admin import helpers
from django.core.exceptions import PermissionDenied
from django.db import models
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core import audit
from queue_core import policy as policies
from queue_core.admin.kept import KeptAdmin
from queue_core.admin.versioned import ModelForm, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.contract import lock_lane
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.models import Lane, Policy, ReasonCode
from queue_core.policy_fit import misfits
from queue_core.questions import Problem, QuestionsFault, read_questions
from queue_core.trial import MOST_TEXT, Trial, try_text
from queue_core.usual_policies import usual_policy

#: The button that fills an empty form from the lane that is chosen in it.
FILL_IN = "_fill_in"
EXAMPLE = '[{"category": "offensive", "reject_at": 0.85, "approve_below": 0.45, "reason_code": "insult"}]'
QUESTIONS_EXAMPLE = """[
  {"type": "choice", "name": "verdict", "instructions": "What should become of this post?",
   "options": [{"value": "approve", "description": "It keeps to the rules."},
               {"value": "reject", "description": "It insults or threatens somebody."}, "unsure"]},
  {"type": "predicate", "name": "threat", "instructions": "The post threatens a person."}
]"""


class LinesField(forms.JSONField):
    """A JSON list with each entry on a line of its own, so that it can be read."""

    def prepare_value(self, value: Any) -> Any:
        if value is None:
            # Not the word null: an empty field shows an example.
            return ""
        if not isinstance(value, list) or not value:
            return super().prepare_value(value)
        return "[\n" + ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in value) + "\n]"


class PolicyForm(ModelForm):
    """Checked against itself, the reason codes in use, and what the lane's model can be asked and answers."""

    questions = LinesField(
        label=gettext_lazy("Questions"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 10, "cols": 90, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "What the model is asked: a list of questions of the type choice (with options), predicate, or score (with "
            "levels). Empty for models that ask their own questions, such as moderation endpoints."
        ),
    )
    rules = LinesField(
        label=gettext_lazy("Rules"),
        widget=forms.Textarea(attrs={"rows": 10, "cols": 90, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "A list of rules: at or above reject_at the ticket is REJECTED on the ground of the reason code, below "
            "approve_below nothing speaks against it, between them people decide. A rule with approve_at names the "
            "least score that approving needs (verdict=approve), one with people_below the least that the model's "
            "word counts at (verdict.confidence)."
        ),
    )
    trial_text = forms.CharField(
        label=gettext_lazy("A text to try"),
        required=False,
        strip=False,
        max_length=MOST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 90}),
        help_text=gettext_lazy("The lane's model is asked once. Nothing is saved, of the text or of the answer."),
    )

    class Meta:
        model = Policy
        fields = ["lane", "questions", "rules", "note"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "rules" in self.fields:
            self.fields["rules"].widget.attrs.setdefault("placeholder", EXAMPLE)
            self.fields["questions"].widget.attrs.setdefault("placeholder", QUESTIONS_EXAMPLE)

    def clean_questions(self) -> Any:
        questions = self.cleaned_data["questions"] or []
        try:
            read_questions(questions)
        except QuestionsFault as fault:
            raise _told(fault.problems) from fault
        return questions

    def clean_rules(self) -> Any:
        rules, lane = self.cleaned_data["rules"], self.cleaned_data.get("lane")
        try:
            policies.Policy.from_rules(rules, codes=None if lane is None else ReasonCode.rejecting(lane.pk))
        except policies.PolicyFault as fault:
            raise _told(fault.problems) from fault
        return rules

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        lane = cleaned.get("lane")
        if lane is not None and "rules" in cleaned and "questions" in cleaned:
            rules, questions = self.parsed()
            for problem in misfits(rules, questions, lane.connection):
                name = "questions" if problem.field == "questions" else "rules"
                self.add_error(name, f"{problem.field}: {problem.message}")
        return cleaned

    def parsed(self) -> tuple[policies.Policy, Any]:
        """The rules and questions of a form whose fields are sound."""
        return policies.Policy.from_rules(self.cleaned_data["rules"]), read_questions(self.cleaned_data["questions"])


def _told(problems: tuple[Problem, ...]) -> forms.ValidationError:
    return forms.ValidationError([f"{problem.field}: {problem.message}" for problem in problems])


@admin.register(Policy)
class PolicyAdmin(KeptAdmin):
    """Versions are made here and never edited. A lead puts one into force on the lane's page, with a reason."""

    form = PolicyForm
    change_form_template = "admin/queue_core/policy/change_form.html"
    list_display = ["lane", "version", "made_at", "made_by", "note", "in_force"]
    list_filter = ["lane", "made_at"]
    search_fields = ["note", "lane__name", "lane__title", "made_by__username"]
    instead_of_deleting = gettext_lazy(
        "A version is neither changed nor deleted, since decisions name it. Make another one: it begins as the newest."
    )
    list_select_related = ["lane", "made_by"]
    readonly_fields = ["version", "made_at", "made_by"]
    actions = None

    @admin.display(boolean=True, description=gettext_lazy("in force"))
    def in_force(self, obj: Policy) -> bool:
        return obj.lane.policy_id == obj.pk

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> Any:
        own = ["lane", "questions", "rules", "note"]
        return [*own, "trial_text"] if obj is None else [*own, *self.readonly_fields]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """A new version begins as the lane's newest, or where there is none as the usual one of its connection."""
        initial: dict[str, Any] = dict(super().get_changeform_initial_data(request))
        lane = _lane_named(initial.get("lane", ""))
        return initial | (_beginning(lane) if lane is not None else {})

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if object_id is None and request.method == "POST" and "_try" in request.POST:
            return self._tried(request, form_url)
        if object_id is None and request.method == "POST" and FILL_IN in request.POST:
            lane = _lane_named(request.POST.get("lane", ""))
            return redirect(f"{request.path}?lane={lane.pk}" if lane is not None else request.path)
        answer: HttpResponse = super().changeform_view(request, object_id, form_url, extra_context)
        return answer

    def _tried(self, request: HttpRequest, form_url: str) -> HttpResponse:
        """The form as it was typed, with what the model said of the text; nothing is saved."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self.get_form(request)(request.POST)
        trial = _try(form) if form.is_valid() else None
        shown = helpers.AdminForm(
            form, cast("Any", self.get_fieldsets(request)), {}, self.get_readonly_fields(request), model_admin=self
        )
        context = {
            **self.admin_site.each_context(request),
            "title": _("Add policy"),
            "adminform": shown,
            "inline_admin_formsets": [],
            "errors": helpers.AdminErrorList(form, []),
            "media": self.media + shown.media,
            "is_popup": False,
            "to_field": None,
            "preserved_filters": self.get_preserved_filters(request),
            "trial": trial,
        }
        answer: HttpResponse = self.render_change_form(request, context, add=True, form_url=form_url)
        return answer

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
            after={"version": obj.version, "rules": obj.rules, "questions": obj.questions},
            address=request.META.get("REMOTE_ADDR"),
        )
        self.message_user(
            request,
            _("Version %(version)d is made. It rules when a lead puts it into force.") % {"version": obj.version},
        )


def _lane_named(pk: str) -> Lane | None:
    return Lane.objects.select_related("connection").filter(pk=pk).first() if pk.isdecimal() and len(pk) < 19 else None


def _beginning(lane: Lane) -> dict[str, Any]:
    newest = Policy.objects.filter(lane=lane).order_by("-version").first()
    if newest is not None:
        return {"rules": newest.rules, "questions": newest.questions}
    usual = usual_policy(lane.connection)
    return {} if usual is None else {"rules": usual.rules, "questions": usual.questions, "note": usual.note}


def _try(form: Any) -> Trial | None:
    """The trial that the form asks for; a mistake becomes an error of its field."""
    rules, questions = form.parsed()
    lane = form.cleaned_data["lane"]
    try:
        return try_text(
            form.cleaned_data["trial_text"], rules, questions, lane.connection, codes=ReasonCode.rejecting(lane.pk)
        )
    except InvalidRequest as fault:
        form.add_error("trial_text", str(fault))
    except ConfigurationFault as fault:
        form.add_error("lane", str(fault))
    return None
