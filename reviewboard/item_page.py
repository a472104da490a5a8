"""What the item's page shows beside the content: its forms, what others said, and what may be taken back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from queue_core import people
from queue_core.models import Appeal, Assignment, Decision, Item, ItemPass, SecondLook
from queue_core.states import DecisionWhy, ItemKind
from queue_core.what_if import Proposal, proposal_for
from reviewboard.item_forms import DecideForm, HandOverForm, PassForm, RequeueForm, colleagues, token_of
from reviewboard.keeping_forms import LookForm
from reviewboard.models import Person
from reviewboard.policy_page import proposal_text
from reviewboard.shapes import Text

#: Of those who had the item before; the rest is on the job's page.
MOST_PASSES = 10


def forms_of(item: Item, person: Person) -> dict[str, Any]:
    """The holder's forms. What they took back, or what a newer policy proposes, is filled in."""
    token = token_of(item)
    proposal = proposal_for(item)
    may_requeue = people.may(person, "requeue_item", item.lane_id) and people.is_requeueable(item)
    filled = {**token, **_proposed(proposal), **_taken_back(item, person)}
    return {
        "token": token,
        "look_form": look_form(item, person, token),
        "form": DecideForm(initial=filled, item=item),
        "proposal": proposal_text(proposal) if proposal else "",
        "requeue_form": RequeueForm(initial=token, auto_id="id_requeue_%s", keep=_kept(item, "requeue"))
        if may_requeue
        else None,
        "hand_over_form": HandOverForm(
            initial=token, person=person, item=item, auto_id="id_hand_over_%s", keep=_kept(item, "hand_over")
        )
        if colleagues(person, item).exists()
        else None,
        "skip_form": PassForm(initial=token, auto_id="id_skip_%s", keep=_kept(item, "skip")),
        "escalate_form": None
        if item.for_leads
        else PassForm(initial=token, auto_id="id_escalate_%s", keep=_kept(item, "escalate")),
    }


def look_form(item: Item, person: Person, token: dict[str, Any]) -> LookForm | None:
    """For restricted content, and one who may see it."""
    may_look = all(people.may(person, right, item.lane_id) for right in ("view_restricted", "view_evidence"))
    if not item.job.evidence.is_restricted or not may_look:
        return None
    return LookForm(initial=token, auto_id="id_look_%s")


def _proposed(proposal: Proposal | None) -> dict[str, Any]:
    if proposal is None:
        return {}
    ground = proposal.ruling.reason_code or ""
    return {"verdict": proposal.verdict, "reason_code": ground, "proposed_by": proposal.policy.pk}


def _taken_back(item: Item, person: Person) -> dict[str, Any]:
    """What this person had decided and took back, to go on from."""
    links = Decision.objects.filter(job=item.job_id, replaced_by__isnull=True, why=DecisionWhy.TAKEN_BACK)
    link = links.select_related("replaces__reason_code").first()
    if link is None or link.replaces is None or link.person_id != person.pk:
        return {}
    before = link.replaces
    ground = before.reason_code.code if before.reason_code is not None else ""
    return {"verdict": before.verdict, "reason_code": ground, "note": before.note}


def keep_key(item: Item, fence: int | None = None) -> str:
    """Under which the browser keeps typed text: item and assignment, so that no note slips into another's hands."""
    if item.job.evidence.is_restricted:
        return ""
    return f"item-{item.pk}-{item.fence if fence is None else fence}"


def _kept(item: Item, act: str) -> str:
    """The same for the reason of one act: the browser forgets it with the note."""
    key = keep_key(item)
    return f"{key}-{act}" if key else ""


def kept_before(item: Item, person: Person) -> str:
    """The same of this person's own assignment before the present one: what they typed then is theirs still."""
    own = Assignment.objects.filter(item=item, person=person, fence__lt=item.fence).order_by("-fence")
    fence = own.values_list("fence", flat=True).first()
    return "" if fence is None else keep_key(item, fence)


def said_before(item: Item) -> dict[str, Any]:
    """What others left with the item: why they passed it on, the appeal's words, the second look that disagreed."""
    passes = ItemPass.objects.filter(item=item).select_related("person", "to").order_by("-pk")[:MOST_PASSES]
    return {"passes": list(passes), "appeal": _appeal(item), "second_look": _second_look(item)}


def _appeal(item: Item) -> Appeal | None:
    return Appeal.objects.filter(pk=item.params.get("appeal", 0)).first() if item.kind == ItemKind.APPEAL else None


def _second_look(item: Item) -> SecondLook | None:
    if item.kind != ItemKind.DISAGREEMENT:
        return None
    looks = SecondLook.objects.select_related("person", "reason_code")
    return looks.filter(pk=item.params.get("second_look", 0)).first()


def why_not_yours(item: Item, person: Person) -> list[str]:
    """Why a person may not decide an item, and whether anybody else may; nothing where they may."""
    if people.may_work_on(item, person):
        return []
    sentences = [str(_why_not_yours(item, person))]
    if not people.who_may_work_on(item).exists():
        sentences.append(
            _("Nobody else may decide it. It stays open until an administrator gives somebody the right to.")
        )
    return sentences


def _why_not_yours(item: Item, person: Person) -> Text:
    if people.is_own_matter(item, person):
        return _("You had a part in what was decided here: somebody who had none looks at it now.")
    if item.for_leads and not people.may(person, people.LEAD, item.lane_id):
        return _("Only leads take it.")
    return _("Only who may see restricted evidence takes it.")


@dataclass(frozen=True, slots=True)
class Undo:
    """A decision that its maker may take back, until its message goes out."""

    decision: Decision
    until: datetime


def undo_of(person: Person, now: datetime) -> Undo | None:
    found = people.to_take_back(person.pk, now=now)
    if found is None or not people.may(person, people.DECIDE, found[0].lane_id):
        return None
    return Undo(*found)
