"""Who has which role where: the roles of one person changed as a whole, and who may not lose theirs."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from queue_core.models import Lane, LaneRole
from queue_core.roles import LEAD, REVIEWER, SPECIALIST, VIEWER

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

#: Roles that may be held on one lane alone. An administrator looks after all of them.
ON_A_LANE = (VIEWER, REVIEWER, SPECIALIST, LEAD)


@dataclass(frozen=True, slots=True)
class Roles:
    """The roles of one person: by name everywhere, and by name and lane."""

    everywhere: frozenset[str] = field(default_factory=frozenset)
    on_lanes: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    def leads(self, lane_ids: Collection[int]) -> set[int]:
        """Which of these lanes somebody with these roles leads."""
        if LEAD in self.everywhere:
            return set(lane_ids)
        return {lane_id for role, lane_id in self.on_lanes if role == LEAD}


def roles_of(person: "AbstractUser") -> Roles:
    rows = LaneRole.objects.filter(person_id=person.pk).values_list("role__name", "lane_id")
    return Roles(frozenset(person.groups.values_list("name", flat=True)), frozenset(rows))


def lock() -> None:
    """Inside a transaction: whoever changes roles waits here for who does so now, and judges what stands then."""
    list(Group.objects.select_for_update(no_key=True).order_by("pk").values_list("pk"))


def lanes_left_without_a_lead(person: "AbstractUser", wanted: Roles) -> list[Lane]:
    """The lanes that this person leads alone, and would no longer. Under `lock`. A closed account wants no role."""
    if not person.is_active:
        return []
    lanes = list(Lane.objects.order_by("name"))
    lost = roles_of(person).leads([lane.pk for lane in lanes]) - wanted.leads([lane.pk for lane in lanes])
    others = get_user_model().objects.filter(is_active=True).exclude(pk=person.pk)
    if not lost or others.filter(groups__name=LEAD).exists():
        return []
    kept = LaneRole.objects.filter(role__name=LEAD, person__in=others).values_list("lane_id", flat=True)
    return [lane for lane in lanes if lane.pk in lost - set(kept)]


def set_on_lanes(person: "AbstractUser", wanted: Collection[tuple[str, int]]) -> None:
    """Make the roles on single lanes what is wanted. The caller has the lock and writes the audit."""
    groups = dict(Group.objects.filter(name__in=ON_A_LANE).values_list("name", "pk"))
    now = {(row.role_id, row.lane_id): row for row in LaneRole.objects.filter(person_id=person.pk)}
    then = {(groups[role], lane_id) for role, lane_id in wanted}
    for key, row in now.items():
        if key not in then:
            row.delete()
    new = [LaneRole(person_id=person.pk, role_id=role, lane_id=lane) for role, lane in sorted(then - now.keys())]
    LaneRole.objects.bulk_create(new)
