"""Who may do what, and on which lane. Views hide by it, verbs refuse by it.

A right comes from a role: on every lane through membership of the role's group, or on one lane through a `LaneRole`.
What is asked without a lane is about all of them.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.db.models import Model, Q, QuerySet

from queue_core.errors import NotPermitted
from queue_core.models import ApiKey, Lane, LaneRole

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

    from queue_core.models.api_keys import Actor

#: Django asks which one, where a project has several. Roles are groups, which this one reads.
BACKEND = "django.contrib.auth.backends.ModelBackend"
#: Read once a person object, as Django reads the rights of groups: another request is another object.
_CACHE = "_queue_core_lane_rights"


def may(person: "Actor", permission: str, lane: Lane | int | None = None) -> bool:
    """Whether a person has one of the permissions of `Lane` on this lane, a row or its id.

    None asks for all lanes, those to come too. An inactive person may nothing. A key has what its scopes stand for, on
    the lanes that it is for.
    """
    if isinstance(person, ApiKey):
        return person.may(permission, lane)
    if person.has_perm(f"queue_core.{permission}"):
        return True
    lane_id = lane.pk if isinstance(lane, Lane) else lane
    return lane_id is not None and permission in _by_lane(person).get(lane_id, ())


def may_somewhere(person: "Actor", permission: str) -> bool:
    """Whether a person has a permission on every lane, or on one at least."""
    lanes = lanes_where_may(person, permission)
    return lanes is None or bool(lanes)


def require(person: "Actor", permission: str, lane: Lane | int | None = None) -> None:
    """Raise NotPermitted unless `may`."""
    if not may(person, permission, lane):
        raise NotPermitted(permission)


def require_somewhere(person: "Actor", permission: str) -> None:
    """Raise NotPermitted unless `may_somewhere`: for verbs that know their lane only when the row is found."""
    if not may_somewhere(person, permission):
        raise NotPermitted(permission)


def may_on_each(person: "Actor", permission: str, lane_ids: Collection[int]) -> bool:
    """Whether a person has a permission on every one of these lanes; where there are none, on all that are."""
    if not lane_ids:
        return may(person, permission)
    return all(may(person, permission, lane_id) for lane_id in lane_ids)


def lanes_where_may(person: "Actor", permission: str) -> frozenset[int] | None:
    """The ids of the lanes on which a person has a permission; None: all of them, those to come too."""
    if may(person, permission):
        return None
    if isinstance(person, ApiKey):
        return frozenset(lane_id for lane_id in person.lanes if person.may(permission, lane_id))
    return frozenset(lane_id for lane_id, rights in _by_lane(person).items() if permission in rights)


def on_lanes_of[M: Model](
    rows: QuerySet[M], person: "Actor", permission: str, *, field: str = "lane_id"
) -> QuerySet[M]:
    """Those rows whose lane, under `field`, is one on which the person has the permission."""
    lanes = lanes_where_may(person, permission)
    return rows if lanes is None else rows.filter(**{f"{field}__in": sorted(lanes)})


def _by_lane(person: "AbstractUser") -> dict[int, set[str]]:
    if not person.is_active or person.pk is None:
        return {}
    found: dict[int, set[str]] | None = person.__dict__.get(_CACHE)
    if found is None:
        found = {}
        rows = LaneRole.objects.filter(person_id=person.pk, role__permissions__content_type__app_label="queue_core")
        for lane_id, codename in rows.values_list("lane_id", "role__permissions__codename"):
            found.setdefault(lane_id, set()).add(codename)
        person.__dict__[_CACHE] = found
    return found


def people_who_may(permission: str, lane: Lane | int | None = None) -> QuerySet["AbstractUser"]:
    """Active people with a permission on this lane; without one, on all of them."""
    model = get_user_model()
    everywhere = model._default_manager.with_perm(f"queue_core.{permission}", backend=BACKEND)
    lane_id = lane.pk if isinstance(lane, Lane) else lane
    if lane_id is None:
        return everywhere
    there = LaneRole.objects.filter(
        lane_id=lane_id,
        role__permissions__codename=permission,
        role__permissions__content_type__app_label="queue_core",
    )
    wanted = Q(pk__in=everywhere.values("pk")) | Q(pk__in=there.values("person"))
    return model._default_manager.filter(wanted, is_active=True)
