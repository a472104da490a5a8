"""The forms of the outages' pages."""

from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy

from queue_core.models import Lane, ModelConnection, Outage
from queue_core.ramp_outages import MOST_HANDOVER, MOST_NOTE, RIGHT
from queue_core.rights import lanes_where_may
from queue_core.states import PERSONS_HOLD_REASONS
from reviewboard.lane_forms import reason_field
from reviewboard.models import Person

BACKEND = "django.contrib.auth.backends.ModelBackend"


class OpenOutageForm(forms.Form):
    prefix = "open"

    connection = forms.ModelChoiceField(
        label=gettext_lazy("Model connection"), queryset=ModelConnection.objects.order_by("name")
    )
    cause = forms.ChoiceField(
        label=gettext_lazy("Cause"), choices=[(reason.value, reason.label) for reason in PERSONS_HOLD_REASONS]
    )
    reason = reason_field()

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lanes = lanes_where_may(person, RIGHT)
        if lanes is not None:
            # A connection whose lanes are all the person's: its outage is one record of them all.
            others = Lane.objects.exclude(pk__in=lanes).values("connection")
            chosen = cast("forms.ModelChoiceField[ModelConnection]", self.fields["connection"])
            mine = ModelConnection.objects.filter(lanes__in=lanes).exclude(pk__in=others)
            chosen.queryset = mine.distinct().order_by("name")


class NoteForm(forms.Form):
    prefix = "note"

    text = forms.CharField(
        label=gettext_lazy("Note"),
        max_length=MOST_NOTE,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("It stays in the log with your name and the time."),
    )


class HandOverForm(forms.Form):
    prefix = "hand-over"

    #: Who was on duty when the form was shown.
    shown = forms.IntegerField(widget=forms.HiddenInput, required=False)
    to = forms.ModelChoiceField(label=gettext_lazy("Lead on duty"), queryset=Person.objects.none())
    note = forms.CharField(
        label=gettext_lazy("Handover note"),
        max_length=MOST_HANDOVER,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=gettext_lazy("What the next person has to know: what was tried, what is next, who was told."),
    )

    def __init__(self, *args: Any, outage: Outage, person: Person, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"shown": outage.lead_on_duty_id, "to": person.pk})
        super().__init__(*args, **kwargs)
        chosen = cast("forms.ModelChoiceField[Person]", self.fields["to"])
        chosen.queryset = Person.objects.with_perm(f"queue_core.{RIGHT}", backend=BACKEND).order_by("username")
