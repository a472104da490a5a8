"""The forms of an item. Each carries the assignment's token, so that a page of an older assignment decides nothing."""

from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from queue_core import people
from queue_core.models import Item, ReasonCode
from queue_core.models.people import MOST_REASON
from queue_core.states import AssignmentToken, Verdict
from reviewboard.lengths import DEADLINES
from reviewboard.models import Person

LARGEST_FENCE = 2**63 - 1


class TokenForm(forms.Form):
    fence = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=LARGEST_FENCE)
    key = forms.UUIDField(widget=forms.HiddenInput)

    def clean(self) -> None:
        super().clean()
        if "key" not in self.data:
            # Sent once more after a sign-in, which carries no keys: what was typed stands there with the key of now.
            self.errors.pop("key", None)
            self.add_error(None, _("You signed in since you typed this. Look once more, then send it."))
        sent = self.data.lists() if isinstance(self.data, QueryDict) else ()
        if any(len(set(values)) > 1 for name, values in sent if name in self.fields):
            # No form of ours does. Which of two verdicts would be meant, nobody can tell.
            self.add_error(None, _("A field came twice with different values. Nothing was done."))

    def token(self, item_id: int) -> AssignmentToken:
        key: UUID = self.cleaned_data["key"]
        return AssignmentToken(item_id, self.cleaned_data["fence"], key)


class DecideForm(TokenForm):
    """Reason codes are those of the item's lane. `proposed_by` is the policy whose proposal was shown."""

    proposed_by = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=1, max_value=LARGEST_FENCE)
    verdict = forms.ChoiceField(
        label=_("Decision"),
        choices=[(Verdict.APPROVED.value, _("Approve")), (Verdict.REJECTED.value, _("Reject"))],
        widget=forms.RadioSelect,
    )
    reason_code = forms.ChoiceField(label=_("Reason code"), required=False, help_text=_("Needed to reject."))
    note = forms.CharField(
        label=_("Note"),
        required=False,
        max_length=people.MOST_NOTE,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def __init__(self, *args: Any, item: Item, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.grounds = list(people.in_use(item.lane_id).order_by("title"))
        self.needs_note = item.kind in people.KINDS_WITH_A_NOTE
        self.fields["reason_code"] = forms.ChoiceField(
            label=_("Reason code"), required=False, help_text=_("Needed to reject."), choices=_choices(self.grounds)
        )

    def clean(self) -> None:
        super().clean()
        verdict, code = self.cleaned_data.get("verdict"), self.cleaned_data.get("reason_code")
        if verdict == Verdict.REJECTED and code == "":
            self.add_error("reason_code", _("Choose the reason code that the rejection rests on."))
        if not self.cleaned_data.get("note", "").strip():
            self._ask_for_note(code)

    def _ask_for_note(self, code: str | None) -> None:
        if self.needs_note:
            self.add_error("note", _("Say why: another person decided this before."))
        elif any(ground.needs_note for ground in self.grounds if ground.code == code):
            self.add_error("note", _("This reason code needs a note."))


def _choices(grounds: list[ReasonCode]) -> list[Any]:
    rejecting = [(row.code, row.title) for row in grounds if row.is_for_rejection]
    approving = [(row.code, row.title) for row in grounds if not row.is_for_rejection]
    choices: list[Any] = [("", "–"), (_("For rejecting"), rejecting)]
    return [*choices, (_("For approving"), approving)] if approving else choices


class ReasonedForm(TokenForm):
    """One that asks for a reason, which the browser keeps under `keep` until it was sent."""

    reason = forms.CharField(label=_("Reason"), max_length=MOST_REASON, widget=forms.Textarea(attrs={"rows": 2}))

    def __init__(self, *args: Any, keep: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if keep:
            self.fields["reason"].widget.attrs["data-keep"] = keep


class PassForm(ReasonedForm):
    """To skip or to escalate."""


class RequeueForm(ReasonedForm):
    deadline = forms.ChoiceField(label=_("New deadline"), choices=DEADLINES, initial="4h")


class HandOverForm(ReasonedForm):
    to = forms.ModelChoiceField(label=_("To"), queryset=Person.objects.none())

    def __init__(self, *args: Any, person: Person, item: Item, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = False
        self.fields["to"] = forms.ModelChoiceField(label=_("To"), queryset=colleagues(person, item))


def colleagues(person: Person, item: Item) -> QuerySet[Person]:
    """Others who may decide the item, by name."""
    able = people.who_may_work_on(item).values("pk")
    return Person.objects.filter(pk__in=able).exclude(pk=person.pk).order_by("username")


def token_of(item: Item) -> dict[str, Any]:
    """The fields of the token of the item's running assignment, for its holder's page alone."""
    own = item.assignments.get(fence=item.fence)
    return {"fence": own.fence, "key": own.key}
