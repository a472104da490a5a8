"""The form of a person: roles everywhere and on single lanes, the last administrator and the last lead kept."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from django import forms
from django.contrib.auth.forms import UserChangeForm
from django.db import models
from django.db.models import Q
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core import memberships
from queue_core.admin.merging import MergingForm
from queue_core.models import Lane
from queue_core.roles import ADMINISTRATOR
from reviewboard.models import Person

if TYPE_CHECKING:
    PersonFormBase = UserChangeForm[Person]
else:
    PersonFormBase = UserChangeForm

EXPLAINED = {
    "username": gettext_lazy(
        "Required. Letters, digits and @ . + - _ only, 150 at most. The audit keeps the name that an act was done "
        "under."
    ),
    "first_name": gettext_lazy("For lists; pages call people by their username."),
    "last_name": gettext_lazy("For lists; pages call people by their username."),
    "email": gettext_lazy("Where mail about alerts goes. Single sign-on finds the account by it."),
    "timezone": gettext_lazy("All times on all pages are shown in it, and days begin and end by it."),
    "language": gettext_lazy("Empty: what the browser asks for."),
    "is_active": gettext_lazy(
        "Otherwise the account is closed: nobody signs in with it, and who is signed in is signed out at once. An "
        "account is closed, never deleted, since the audit and decisions name it."
    ),
    "is_staff": gettext_lazy("Whether the admin opens at all. What may be done there comes from the roles."),
    "is_superuser": gettext_lazy("Has every right on every lane without any role, and alone makes other superusers."),
    "groups": gettext_lazy(
        "Roles on every lane, those to come too. Viewer: sees board, lanes and jobs. Reviewer: decides items. "
        "Specialist: restricted evidence and preservation holds. Lead: raises stages, puts policies into force, "
        "imports, reads the audit. Administrator: these pages, and erasing."
    ),
}


class PersonForm(MergingForm, PersonFormBase):
    """So that no save gives back a right that was taken meanwhile."""

    audited_as: ClassVar[dict[str, str]] = {"groups": "roles", "on_lanes": "lane_roles"}
    on_lanes = forms.MultipleChoiceField(
        label=gettext_lazy("Roles on single lanes"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Beside the groups, which are roles on every lane, those to come too."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "on_lanes" in self.fields:
            on_lanes = cast("forms.MultipleChoiceField", self.fields["on_lanes"])
            on_lanes.choices = _choices()
            if "on_lanes" not in self.initial:
                on_lanes.initial = _keys_of(cast("Person", self.instance)) if self.instance.pk else []

    def compared(self) -> list[str]:
        return [*super().compared(), *(name for name in self.audited_as if name in self.fields)]

    def stored(self, row: models.Model) -> dict[str, Any]:
        own = super().stored(row)
        return own | {name: self._roles(row)[name] for name in self.audited_as if name in self.fields}

    def current(self, row: models.Model, name: str) -> Any:
        if name == "groups":
            return cast("Person", row).groups.all()
        return self._roles(row)[name] if name in self.audited_as else super().current(row, name)

    def lock(self) -> Person:
        _lock_with_administrators(cast("Person", self.instance))
        return Person.objects.get(pk=self.instance.pk)

    def clean(self) -> Any:
        cleaned = super().clean()
        if self.errors:
            return cleaned
        stored = Person.objects.get(pk=self.instance.pk)
        if _is_last_administrator(stored) and not _stays_administrator(stored, cleaned):
            raise forms.ValidationError(
                _("This is the last administrator: make another person one before you change this one's role.")
            )
        left = memberships.lanes_left_without_a_lead(stored, _wanted(cleaned))
        if left:
            text = ngettext(
                "This is the last lead of %(lanes)s: make another person its lead first.",
                "This is the last lead of these lanes: %(lanes)s. Make another person their lead first.",
                len(left),
            )
            raise forms.ValidationError(text % {"lanes": get_text_list([str(lane) for lane in left], _("and"))})
        return cleaned

    @staticmethod
    def _roles(row: models.Model) -> dict[str, list[Any]]:
        person = cast("Person", row)
        return {"groups": sorted(person.groups.values_list("pk", flat=True)), "on_lanes": _keys_of(person)}


def _choices() -> list[tuple[str, str]]:
    """Each role on each lane, under a key that a form can send."""
    lanes = Lane.objects.order_by("name")
    return [
        (f"{role}:{lane.pk}", _("%(role)s on %(lane)s") % {"role": role, "lane": lane})
        for lane in lanes
        for role in memberships.ON_A_LANE
    ]


def _keys_of(person: Person) -> list[str]:
    return sorted(f"{role}:{lane_id}" for role, lane_id in memberships.roles_of(person).on_lanes)


def lane_roles(keys: Iterable[str]) -> frozenset[tuple[str, int]]:
    return frozenset((role, int(lane_id)) for role, _colon, lane_id in (key.partition(":") for key in keys))


def _wanted(cleaned: dict[str, Any]) -> memberships.Roles:
    """What a form asks for. A closed account has no role that counts."""
    if not cleaned.get("is_active"):
        return memberships.Roles()
    names = frozenset(group.name for group in cleaned.get("groups", ()))
    return memberships.Roles(names, lane_roles(cleaned.get("on_lanes", ())))


def _lock_with_administrators(person: Person) -> None:
    """So that of two administrators who take each other's role the second is told to be the last one; leads alike."""
    memberships.lock()
    wanted = Q(pk=person.pk) | Q(pk__in=_administrators().values("pk"))
    list(Person.objects.select_for_update(no_key=True).filter(wanted).order_by("pk").values_list("pk"))


def _administrators() -> Any:
    """By their role, or as superusers: the first person of a site is one, made by a command."""
    by_role = Person.objects.filter(groups__name=ADMINISTRATOR)
    is_one = Q(is_superuser=True) | Q(pk__in=by_role.values("pk"))
    return Person.objects.filter(is_one, is_active=True, is_staff=True)


def _is_last_administrator(person: Person) -> bool:
    admins = _administrators()
    return admins.filter(pk=person.pk).exists() and not admins.exclude(pk=person.pk).exists()


def _stays_administrator(stored: Person, cleaned: dict[str, Any]) -> bool:
    names = {group.name for group in cleaned.get("groups", ())}
    # Who may not make superusers has no such field.
    is_one = ADMINISTRATOR in names or cleaned.get("is_superuser", stored.is_superuser)
    return bool(cleaned.get("is_active")) and bool(cleaned.get("is_staff")) and bool(is_one)
