"""The forms of a recall: which decisions, and then, beside their number, whether. And of a run that kept back."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from django import forms
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.models import Lane, ReasonCode, StageRun
from queue_core.recalls import Selection
from queue_core.states import RecallTo, Verdict
from reviewboard.lane_forms import reason_field
from reviewboard.lengths import DEADLINES, LENGTHS, length_of
from reviewboard.where_text import moment

SHOWN_RUNS = 20
SINCE = [
    ("", gettext_lazy("the run's start, or ever")),
    ("30m", gettext_lazy("30 minutes ago")),
    ("1h", gettext_lazy("1 hour ago")),
    ("2h", gettext_lazy("2 hours ago")),
    ("4h", gettext_lazy("4 hours ago")),
    ("8h", gettext_lazy("8 hours ago")),
    ("24h", gettext_lazy("24 hours ago")),
    ("3d", gettext_lazy("3 days ago")),
    ("7d", gettext_lazy("7 days ago")),
]


class ChooseForm(forms.Form):
    """Which decisions: sent by GET, so that a preview has an address."""

    run = forms.ChoiceField(label=gettext_lazy("Stage run"), required=False)
    since = forms.ChoiceField(label=gettext_lazy("Decided since"), choices=SINCE, required=False)
    verdict = forms.ChoiceField(
        label=gettext_lazy("Decided as"),
        choices=[("", gettext_lazy("any")), *[(one.value, one.value) for one in Verdict]],
        required=False,
    )
    reason_code = forms.ChoiceField(label=gettext_lazy("Reason code"), required=False)

    def __init__(self, *args: Any, lane: Lane, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runs = StageRun.objects.filter(lane=lane).order_by("-started_at", "-pk")[:SHOWN_RUNS]
        _offer(self, "run", [("", _("any")), *[(str(run.pk), run_name(run)) for run in runs]])
        codes = ReasonCode.objects.order_by("code").values_list("code", "title")
        _offer(self, "reason_code", [("", _("any")), *codes])

    def selection(self, *, now: datetime) -> Selection:
        fields = self.cleaned_data
        return Selection(
            until=now,
            run=int(fields["run"]) if fields["run"] else None,
            since=now - LENGTHS[fields["since"]] if fields["since"] else None,
            verdict=Verdict(fields["verdict"]) if fields["verdict"] else None,
            reason_code=fields["reason_code"],
        )


class RecallForm(forms.Form):
    """What was previewed, hidden, and what to do with it."""

    prefix = "recall"

    run = forms.IntegerField(widget=forms.HiddenInput, required=False)
    since = forms.CharField(widget=forms.HiddenInput, required=False, max_length=40)
    until = forms.CharField(widget=forms.HiddenInput, max_length=40)
    verdict = forms.ChoiceField(
        widget=forms.HiddenInput, required=False, choices=[("", ""), *[(one.value, one.value) for one in Verdict]]
    )
    reason_code = forms.CharField(widget=forms.HiddenInput, required=False, max_length=64)
    shown = forms.IntegerField(widget=forms.HiddenInput, min_value=0)
    to = forms.ChoiceField(
        label=gettext_lazy("What becomes of the tickets"), choices=RecallTo, widget=forms.RadioSelect
    )
    deadline = forms.TypedChoiceField(
        label=gettext_lazy("Deadline of a new round"),
        choices=DEADLINES,
        coerce=length_of,
        help_text=gettext_lazy("A hard deadline stays as it is. What may not wait for a model goes to people."),
    )
    reason = reason_field()

    def clean_since(self) -> datetime | None:
        return _moment(self.cleaned_data["since"]) if self.cleaned_data["since"] else None

    def clean_until(self) -> datetime:
        return _moment(self.cleaned_data["until"])

    def selection(self, *, now: datetime) -> Selection:
        fields = self.cleaned_data
        return Selection(
            until=min(fields["until"], now),
            run=fields["run"],
            since=fields["since"],
            verdict=Verdict(fields["verdict"]) if fields["verdict"] else None,
            reason_code=fields["reason_code"],
        )

    @property
    def deadline_after(self) -> timedelta:
        after: timedelta = self.cleaned_data["deadline"]
        return after


def recall_form(chosen: Selection, *, shown: int) -> RecallForm:
    """An empty form, bound to what a preview showed."""
    initial = {
        **chosen.as_json(),
        "reason_code": chosen.reason_code,
        "shown": shown,
        "to": RecallTo.PEOPLE,
        "deadline": "4h",
    }
    return RecallForm(initial=initial)


class AcceptForm(forms.Form):
    """Let the decisions go out that an ended run kept back. A page has a form for each such run."""

    prefix = "accept"

    run = forms.IntegerField(widget=forms.HiddenInput)
    shown = forms.IntegerField(widget=forms.HiddenInput)
    reason = reason_field()

    def __init__(self, *args: Any, run_id: int, shown: int, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"run": run_id, "shown": shown})
        kwargs.setdefault("auto_id", f"id_accept_{run_id}_%s")
        super().__init__(*args, **kwargs)
        self.run_id = run_id


def run_name(run: StageRun) -> str:
    return _("stage %(number)d, %(name)s, started %(at)s") % {
        "number": run.number,
        "name": run.name,
        "at": moment(run.started_at),
    }


def _moment(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise forms.ValidationError(_("That is not a time."))
    return found


def _offer(form: forms.Form, name: str, choices: Sequence[tuple[Any, Any]]) -> None:
    cast("forms.ChoiceField", form.fields[name]).choices = list(choices)
