"""Which open items a person may work on: not what is for others alone, nor what they themselves decided before."""

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef, Q, QuerySet

from queue_core.models import Decision, Item
from queue_core.people.rights import lanes_where_may, may, on_lanes_of
from queue_core.states import ItemKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

DECIDE = "decide_item"
LEAD = "lead_desk"
RESTRICTED = "view_restricted"
#: Looked at by somebody other than whoever took part before.
OF_ANOTHER = (ItemKind.SECOND_LOOK, ItemKind.APPEAL)


def open_to(items: QuerySet[Item], person: "AbstractUser") -> QuerySet[Item]:
    """Of these items those that the person may take, whoever holds them now."""
    items = on_lanes_of(items, person, DECIDE)
    leads = lanes_where_may(person, LEAD)
    if leads is not None:
        items = items.filter(Q(for_leads=False) | Q(lane_id__in=sorted(leads)))
    specialists = lanes_where_may(person, RESTRICTED)
    if specialists is not None:
        items = items.filter(Q(job__evidence__is_restricted=False) | Q(lane_id__in=sorted(specialists)))
    own = Decision.objects.filter(job=OuterRef("job"), person_id=person.pk, verdict__isnull=False)
    return items.filter(~Q(kind__in=OF_ANOTHER) | ~Exists(own))


def may_work_on(item: Item, person: "AbstractUser") -> bool:
    """The same for one item."""
    if not all(may(person, right, item.lane_id) for right in rights_for(item)):
        return False
    return item.kind not in OF_ANOTHER or not took_part(item, person)


def rights_for(item: Item) -> list[str]:
    """What whoever decides an item needs on its lane."""
    found = [DECIDE]
    if item.for_leads:
        found.append(LEAD)
    if item.job.evidence.is_restricted:
        found.append(RESTRICTED)
    return found


def took_part(item: Item, person: "AbstractUser") -> bool:
    """Whether a decision of the item's job is this person's."""
    return Decision.objects.filter(job=item.job_id, person_id=person.pk, verdict__isnull=False).exists()
