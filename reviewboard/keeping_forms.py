"""Forms about content that is restricted, kept for an authority, or erased."""

from datetime import datetime, time, timedelta

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from queue_core.models import Evidence, Ticket
from queue_core.models.preservation import MAX_AUTHORITY, MAX_GROUND, MAX_REFERENCE
from queue_core.people.keeping import MOST_REASON
from queue_core.people.restricting import MOST_PURPOSE
from reviewboard.item_forms import TokenForm


class LookForm(TokenForm):
    purpose = forms.CharField(
        label=_("What for?"),
        max_length=MOST_PURPOSE,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text=_("It stands in the audit with your name, before the content is shown."),
    )


def _reason() -> forms.CharField:
    return forms.CharField(
        label=_("Reason"), max_length=MOST_REASON, widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("It stands in the audit."),
    )  # fmt: skip


class AuthorityForm(forms.Form):
    authority = forms.CharField(label=_("Authority"), max_length=MAX_AUTHORITY)
    reference = forms.CharField(label=_("Its reference"), max_length=MAX_REFERENCE)


class PreserveForm(AuthorityForm):
    prefix = "preserve"

    until = forms.DateField(
        label=_("Until, that day included"),
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=_("In your time zone. Until then nothing of the ticket is erased, whoever asks."),
    )
    reason = _reason()

    def end(self) -> datetime:
        """The end of the chosen day in the reader's zone."""
        day = self.cleaned_data["until"] + timedelta(days=1)
        return datetime.combine(day, time(), timezone.get_current_timezone())

    def clean_until(self) -> object:
        day = self.cleaned_data["until"]
        if day.year > timezone.localtime().year + 11:
            raise forms.ValidationError(_("A hold ends within ten years."))
        return day


class LiftForm(forms.Form):
    reason = _reason()


class ReportForm(AuthorityForm):
    prefix = "report"

    evidence = forms.ModelChoiceField(label=_("Revision"), queryset=Evidence.objects.none())
    reason = _reason()

    def __init__(self, *args: object, ticket: Ticket, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        chosen = Evidence.objects.filter(ticket=ticket, is_restricted=True).order_by("-pk")
        self.fields["evidence"] = _RevisionField(label=_("Revision"), queryset=chosen, empty_label=None)


class _RevisionField(forms.ModelChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, obj: Evidence) -> str:
        return obj.revision


class EraseForm(forms.Form):
    prefix = "erase"

    ground = forms.CharField(
        label=_("Ground"),
        max_length=MAX_GROUND,
        help_text=_("Why it is erased: it is shown in the content's place. Write nothing of the content."),
    )
