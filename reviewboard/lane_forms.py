"""The forms of a lane's page. What they bind the act to (run, hold, figures) is hidden in them; the verb judges it."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.models import Hold, Lane, Outage, StageRun
from queue_core.states import PERSONS_HOLD_REASONS, HoldForm
from reviewboard.lengths import LENGTHS

MOST_REASON = 500
UNTIL = [
    ("", gettext_lazy("until somebody starts it again")),
    ("30m", gettext_lazy("30 minutes")),
    ("1h", gettext_lazy("1 hour")),
    ("2h", gettext_lazy("2 hours")),
    ("4h", gettext_lazy("4 hours")),
    ("8h", gettext_lazy("8 hours")),
]


def reason_field() -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=MOST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Kept beside the act, for those who read it later."),
    )


class RaiseForm(forms.Form):
    prefix = "raise"

    figures_id = forms.CharField(widget=forms.HiddenInput)
    reason = reason_field()
    override_reason = forms.CharField(
        label=gettext_lazy("Why past what is missing"),
        required=False,
        max_length=MOST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("You have the right to go past an unmet soak or guardrail. It is kept with your name."),
    )

    def __init__(self, *args: Any, may_override: bool = False, keep: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not may_override:
            del self.fields["override_reason"]
        if keep:
            for name in self.fields.keys() & {"reason", "override_reason"}:
                self.fields[name].widget.attrs["data-keep"] = f"{keep}-{name}"


class PullForm(forms.Form):
    """Hold. On a lane that is on hold only the stricter form is left."""

    prefix = "hold"

    form = forms.ChoiceField(
        label=gettext_lazy("What happens to running calls"), choices=HoldForm, widget=forms.RadioSelect
    )
    reason = forms.ChoiceField(
        label=gettext_lazy("Reason"),
        choices=[(one.value, one.label) for one in PERSONS_HOLD_REASONS],
        widget=forms.RadioSelect,
    )
    until = forms.ChoiceField(
        label=gettext_lazy("On purpose for"),
        choices=UNTIL,
        required=False,
        help_text=gettext_lazy("Until then the age of what is held alarms nobody. It starts nothing by itself."),
    )
    note = forms.CharField(label=gettext_lazy("Note"), required=False, max_length=MOST_REASON)

    def __init__(self, *args: Any, lane: Lane, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"form": HoldForm.HOLD})
        super().__init__(*args, **kwargs)
        if lane.is_on_hold:
            _offer(self, "form", [(HoldForm.REFUSE.value, HoldForm.REFUSE.label)])
            self.initial["form"] = HoldForm.REFUSE
            del self.fields["until"]

    def clean_until(self) -> Any:
        code = self.cleaned_data["until"]
        return LENGTHS[code] if code else None


class ResumeForm(forms.Form):
    prefix = "resume"

    hold = forms.IntegerField(widget=forms.HiddenInput)
    to = forms.TypedChoiceField(label=gettext_lazy("At"), coerce=int)
    reason = reason_field()

    def __init__(self, *args: Any, hold: Hold, run: StageRun, stages: Sequence[tuple[int, str]], **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"hold": hold.pk, "to": run.number})
        super().__init__(*args, **kwargs)
        before = (run.number, _("stage %(number)d, as before") % {"number": run.number})
        _offer(self, "to", [before, *_lower(stages, run)])


class StepDownForm(forms.Form):
    prefix = "down"

    run = forms.IntegerField(widget=forms.HiddenInput)
    to = forms.TypedChoiceField(label=gettext_lazy("Down to"), coerce=int)
    reason = reason_field()

    def __init__(self, *args: Any, run: StageRun, stages: Sequence[tuple[int, str]], **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"run": run.pk, "to": run.number - 1})
        super().__init__(*args, **kwargs)
        _offer(self, "to", _lower(stages, run))


class CapForm(forms.Form):
    prefix = "cap"

    run = forms.IntegerField(widget=forms.HiddenInput)
    cap = forms.IntegerField(label=gettext_lazy("Calls at once"), min_value=1)
    reason = reason_field()

    def __init__(self, *args: Any, lane: Lane, run: StageRun, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"run": run.pk, "cap": lane.cap})
        super().__init__(*args, **kwargs)
        cap = self.fields["cap"]
        cap.widget.attrs["max"] = run.cap
        cap.help_text = _("At most %(cap)d, which was approved with this stage.") % {"cap": run.cap}


class PolicyForm(forms.Form):
    """One version to put into force; a page has a form for each."""

    prefix = "policy"

    to = forms.IntegerField(widget=forms.HiddenInput)
    replaces = forms.IntegerField(widget=forms.HiddenInput, required=False)
    reason = reason_field()

    def __init__(self, *args: Any, lane: Lane, version: int, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"to": version, "replaces": lane.policy_id})
        # Ids of their own, for the forms of all versions stand on one page.
        kwargs.setdefault("auto_id", f"id_{version}_%s")
        super().__init__(*args, **kwargs)
        self.version = version


class CloseOutageForm(forms.Form):
    prefix = "outage"

    outage = forms.IntegerField(widget=forms.HiddenInput)
    reason = reason_field()

    def __init__(self, *args: Any, outage: Outage, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"outage": outage.pk})
        super().__init__(*args, **kwargs)


def _offer(form: forms.Form, name: str, choices: Sequence[tuple[Any, Any]]) -> None:
    cast("forms.ChoiceField", form.fields[name]).choices = list(choices)


def _lower(stages: Sequence[tuple[int, str]], run: StageRun) -> list[tuple[int, str]]:
    """The stages below a run, the nearest first."""
    return [stage for stage in reversed(stages) if stage[0] < run.number]
