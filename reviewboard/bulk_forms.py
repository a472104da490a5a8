"""What the maker of a bulk act chooses, by its kind, and why: one reason for all its jobs."""

from typing import Any, cast

from django import forms
from django.utils.translation import gettext_lazy

from queue_core import bulk, people
from queue_core.bulk import Terms
from queue_core.models import BulkAct
from queue_core.states import BulkKind
from reviewboard.lane_forms import reason_field
from reviewboard.lengths import DEADLINES, SPANS, length_of
from reviewboard.models import Person

#: People offered as receivers. Whoever is not among them gets items one by one.
MOST_RECEIVERS = 500


class ReasonForm(forms.Form):
    reason = reason_field()

    def terms(self) -> Terms:
        return Terms()


class SpreadForm(ReasonForm):
    first = forms.ChoiceField(label=gettext_lazy("First new deadline"), choices=DEADLINES, initial="4h")
    span = forms.ChoiceField(
        label=gettext_lazy("Spread the deadlines over"),
        choices=SPANS,
        initial="2h",
        help_text=gettext_lazy("The most severe get the nearest ones. Spread, they do not all fall due at once."),
    )
    field_order = ("first", "span", "moves_again", "reason")

    def terms(self) -> Terms:
        fields = self.cleaned_data
        return Terms(
            first=length_of(fields["first"]),
            span=length_of(fields["span"]),
            moves_again=fields.get("moves_again", False),
        )


class MoveForm(SpreadForm):
    moves_again = forms.BooleanField(
        label=gettext_lazy("Also those that were moved before"),
        required=False,
        help_text=gettext_lazy("A deadline moves once an outage, unless you say so. It stands in the audit."),
    )


class HandOverForm(ReasonForm):
    to = forms.ChoiceField(label=gettext_lazy("To"))
    field_order = ("to", "reason")

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        others = Person.objects.filter(is_active=True).exclude(pk=person.pk).order_by("username")[:MOST_RECEIVERS]
        names = [(str(one.pk), one.get_username()) for one in others if people.may_somewhere(one, "decide_item")]
        cast("forms.ChoiceField", self.fields["to"]).choices = names

    def terms(self) -> Terms:
        return Terms(to=int(self.cleaned_data["to"]))


class RejectForm(ReasonForm):
    reason_code = forms.ChoiceField(label=gettext_lazy("Reason code"))
    field_order = ("reason_code", "reason")

    def __init__(self, *args: Any, act: BulkAct, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "–"), *((ground.code, str(ground)) for ground in bulk.rejecting(act).order_by("code"))]
        cast("forms.ChoiceField", self.fields["reason_code"]).choices = choices

    def terms(self) -> Terms:
        return Terms(reason_code=self.cleaned_data["reason_code"])


def form_of(act: BulkAct, person: Person, data: Any = None) -> ReasonForm:
    """The form of an act's kind; bound to `data` where it was sent."""
    if act.kind == BulkKind.HAND_OVER:
        return HandOverForm(data, person=person)
    if act.kind == BulkKind.REJECT:
        return RejectForm(data, act=act)
    forms_by_kind: dict[str, type[ReasonForm]] = {BulkKind.REQUEUE: SpreadForm, BulkKind.MOVE_DEADLINES: MoveForm}
    return forms_by_kind.get(act.kind, ReasonForm)(data)
