"""Which open items a person may work on: not what is for others alone, nor what they themselves had a part in."""

from typing import TYPE_CHECKING

from django.db.models import Exists, Model, OuterRef, Q, QuerySet

from queue_core.models import BlindCheck, BulkEntry, Decision, Item, SecondLook
from queue_core.people.rights import lanes_where_may, may, people_who_may
from queue_core.states import BulkOutcome, DecisionWhy, ItemKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

DECIDE = "decide_item"
LEAD = "lead_desk"
RESTRICTED = "view_restricted"
#: Looked at by somebody other than whoever took part before.
OF_ANOTHER = (ItemKind.SECOND_LOOK, ItemKind.DISAGREEMENT, ItemKind.APPEAL)


def open_to(items: QuerySet[Item], person: "AbstractUser") -> QuerySet[Item]:
    """Of these items those that the person may take, whoever holds them now."""
    return items.filter(is_open_to(person))


def is_open_to(person: "AbstractUser") -> Q:
    """The same as a condition on items, to be counted by."""
    found = ~Q(kind__in=OF_ANOTHER) | ~_has_part_of(person)
    decides = lanes_where_may(person, DECIDE)
    if decides is not None:
        found &= Q(lane_id__in=sorted(decides))
    for right, without in ((LEAD, Q(for_leads=False)), (RESTRICTED, Q(job__evidence__is_restricted=False))):
        lanes = lanes_where_may(person, right)
        if lanes is not None:
            found &= without | Q(lane_id__in=sorted(lanes))
    return found


def may_work_on(item: Item, person: "AbstractUser") -> bool:
    """The same for one item."""
    return all(may(person, right, item.lane_id) for right in rights_for(item)) and not is_own_matter(item, person)


def rights_for(item: Item) -> list[str]:
    """What whoever decides an item needs on its lane."""
    found = [DECIDE]
    if item.for_leads:
        found.append(LEAD)
    if item.job.evidence.is_restricted:
        found.append(RESTRICTED)
    return found


def is_own_matter(item: Item, person: "AbstractUser") -> bool:
    """Whether an item looks once more at what this very person had a part in, so that somebody else decides it."""
    return item.kind in OF_ANOTHER and person.pk in took_part(item.job_id)


def who_may_work_on(item: Item) -> QuerySet["AbstractUser"]:
    """Everybody who may take an item, whoever holds it now."""
    first, *others = rights_for(item)
    found = people_who_may(first, item.lane_id)
    for right in others:
        found = found.filter(pk__in=people_who_may(right, item.lane_id).values("pk"))
    return found.exclude(pk__in=took_part(item.job_id)) if item.kind in OF_ANOTHER else found


def took_part(job_id: int) -> frozenset[int]:
    """The keys of all who decided a job's content, looked at it again, or let a bulk act decide it.

    A decision that was taken back counts for nothing: nobody was told of it, and its maker has it in hand again.
    """
    found: set[int] = set()
    for rows, who in _parts(job_id):
        found.update(rows.values_list(who, flat=True))
    return frozenset(found)


def _has_part_of(person: "AbstractUser") -> Q:
    """The same in SQL, of one person and for each item's job."""
    has = Q()
    for rows, who in _parts(OuterRef("job")):
        has |= Q(Exists(rows.filter(**{who: person.pk})))
    return has


def _parts(job: int | OuterRef) -> list[tuple[QuerySet[Model], str]]:
    """Rows that say who had a part in what was decided of a job, each with its field for the person."""
    decided = Decision.objects.filter(job=job, person__isnull=False, verdict__isnull=False)
    stood = decided.exclude(why=DecisionWhy.TAKEN_BACK).exclude(replaced_by__why=DecisionWhy.TAKEN_BACK)
    return [
        (stood, "person"),
        (SecondLook.objects.filter(item__job=job), "person"),
        (BlindCheck.objects.filter(item__job=job), "person"),
        (
            BulkEntry.objects.filter(job=job, outcome=BulkOutcome.DONE, act__seconded_by__isnull=False),
            "act__seconded_by",
        ),
    ]
