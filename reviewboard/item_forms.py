"""The forms of an item. Each carries the assignment's token, so that a page of an older assignment decides nothing."""

from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from queue_core import people
from queue_core.models import Item, ReasonCode
from queue_core.states import AssignmentToken, Verdict
from reviewboard.lengths import DEADLINES
from reviewboard.models import Person

LARGEST_FENCE = 2**63 - 1


class TokenForm(forms.Form):
    fence = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=LARGEST_FENCE)
    key = forms.UUIDField(widget=forms.HiddenInput)

    def token(self, item_id: int) -> AssignmentToken:
        key: UUID = self.cleaned_data["key"]
        return AssignmentToken(item_id, self.cleaned_data["fence"], key)


class DecideForm(TokenForm):
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

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for_rejecting, for_approving = _grounds()
        choices: list[Any] = [("", "–"), (_("For rejecting"), for_rejecting)]
        if for_approving:
            choices.append((_("For approving"), for_approving))
        self.fields["reason_code"] = forms.ChoiceField(
            label=_("Reason code"), required=False, help_text=_("Needed to reject."), choices=choices
        )

    def clean(self) -> None:
        super().clean()
        verdict, code = self.cleaned_data.get("verdict"), self.cleaned_data.get("reason_code")
        if verdict == Verdict.REJECTED and code == "":
            self.add_error("reason_code", _("Choose the reason code that the rejection rests on."))


def _grounds() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    rows = list(ReasonCode.objects.filter(is_active=True).order_by("title"))
    rejecting = [(row.code, row.title) for row in rows if row.is_for_rejection]
    return rejecting, [(row.code, row.title) for row in rows if not row.is_for_rejection]


class RequeueForm(TokenForm):
    deadline = forms.ChoiceField(label=_("New deadline"), choices=DEADLINES, initial="4h")
    reason = forms.CharField(label=_("Reason"), max_length=500, widget=forms.Textarea(attrs={"rows": 2}))


class HandOverForm(TokenForm):
    to = forms.ModelChoiceField(label=_("To"), queryset=Person.objects.none())

    def __init__(self, *args: Any, person: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["to"] = forms.ModelChoiceField(label=_("To"), queryset=colleagues(person))


def colleagues(person: Person) -> Any:
    """Others who may decide items, by name."""
    deciders = Person.objects.with_perm("queue_core.decide_item", backend="django.contrib.auth.backends.ModelBackend")
    return deciders.exclude(pk=person.pk).order_by("username")


def token_of(item: Item) -> dict[str, Any]:
    """The fields of the token of the item's running assignment, for its holder's page alone."""
    own = item.assignments.get(fence=item.fence)
    return {"fence": own.fence, "key": own.key}
