"""People in the admin. What somebody may do comes from groups; an account is closed, never deleted."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core import audit, memberships
from queue_core.admin.versioned import person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Lane, LaneRole
from queue_core.roles import ADMINISTRATOR
from reviewboard import lockout
from reviewboard.models import Person

if TYPE_CHECKING:
    PersonAdminBase = UserAdmin[Person]
    PersonFormBase = UserChangeForm[Person]
else:
    PersonAdminBase = UserAdmin
    PersonFormBase = UserChangeForm

SHOWN = (
    "username",
    "email",
    "first_name",
    "last_name",
    "is_active",
    "is_staff",
    "is_superuser",
    "timezone",
    "language",
)

# Groups are the four roles; a migration makes them, and their permissions are part of the release.
admin.site.unregister(Group)

admin.site.site_title = "Reviewboard"
admin.site.site_header = "Reviewboard"


class PersonForm(PersonFormBase):
    """Carries what the person was when the form was loaded, so that no save gives back a right taken meanwhile."""

    loaded_state = forms.CharField(widget=forms.HiddenInput, required=False)
    on_lanes = forms.MultipleChoiceField(
        label=gettext_lazy("Roles on single lanes"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Beside the groups, which are roles on every lane, those to come too."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk and "loaded_state" in self.fields:
            self.fields["loaded_state"].initial = json.dumps(_state(self.instance), sort_keys=True)
        if "on_lanes" in self.fields:
            on_lanes = cast("forms.MultipleChoiceField", self.fields["on_lanes"])
            on_lanes.choices = _choices()
            on_lanes.initial = _keys_of(self.instance) if self.instance.pk else []

    def clean(self) -> Any:
        cleaned = super().clean() or self.cleaned_data
        # Django's admin runs its change view in a transaction: the locks last until the save.
        _lock_with_administrators(self.instance)
        stored = Person.objects.get(pk=self.instance.pk)
        self._tell_conflict(_state(stored), cleaned.get("loaded_state") or "")
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

    def _tell_conflict(self, now: dict[str, Any], loaded: str) -> None:
        """Raise where the person is not as the form was loaded with, and say which fields. What was typed stays."""
        try:
            before = json.loads(loaded)
        except ValueError:
            before = {}
        changed = [name for name in now if not isinstance(before, dict) or before.get(name) != now[name]]
        if not changed:
            return
        general = _("Somebody else saved this meanwhile. Nothing of yours was saved; load the page anew.")
        told = [
            _("%(field)s is now “%(theirs)s”.") % {"field": _label(name), "theirs": _said(now[name])}
            for name in changed
        ]
        raise forms.ValidationError([general, *told])


def _label(name: str) -> str:
    labels = {"roles": _("Role"), "lane_roles": _("Roles on single lanes")}
    return labels.get(name) or str(getattr(Person._meta.get_field(name), "verbose_name", name))


def _said(value: object) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return ", ".join(value) if isinstance(value, list) else str(value)


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


def _pairs(keys: Iterable[str]) -> frozenset[tuple[str, int]]:
    return frozenset((role, int(lane_id)) for role, _colon, lane_id in (key.partition(":") for key in keys))


def _wanted(cleaned: dict[str, Any]) -> memberships.Roles:
    """What a form asks for. A closed account has no role that counts."""
    if not cleaned.get("is_active"):
        return memberships.Roles()
    names = frozenset(group.name for group in cleaned.get("groups", ()))
    return memberships.Roles(names, _pairs(cleaned.get("on_lanes", ())))


@admin.register(Person)
class PersonAdmin(PersonAdminBase):
    form = PersonForm
    list_display = ["username", "first_name", "last_name", "roles", "is_active", "is_staff", "last_login"]
    list_filter = ["is_active", "is_staff", "groups"]
    # Deleting is refused below, so that Django's own action for it is not offered.
    actions = ("let_in",)
    fieldsets = (
        (None, {"fields": ("username", "password", "loaded_state")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email", "timezone", "language")}),
        (gettext_lazy("Role"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "on_lanes")}),
        (gettext_lazy("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")
    filter_horizontal = ("groups",)

    @admin.action(description=gettext_lazy("Let in again after failed sign-ins"), permissions=["change"])
    def let_in(self, request: HttpRequest, queryset: Any) -> None:
        ended = sum(lockout.let_in(person, by=person_of(request)) for person in queryset)
        text = ngettext("%(count)d person may try again.", "%(count)d people may try again.", ended)
        self.message_user(request, text % {"count": ended})

    @admin.display(description=gettext_lazy("roles"))
    def roles(self, obj: Person) -> str:
        return ", ".join(sorted(group.name for group in obj.groups.all())) or "–"

    @admin.display(description=gettext_lazy("Roles on single lanes"))
    def on_lanes(self, obj: Person) -> str:
        """Where the person may not be changed: the form's field is not there."""
        return ", ".join(_state(obj)["lane_roles"]) or "–"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # Only a superuser makes another: else every administrator could be one.
        own = super().get_readonly_fields(request, obj)
        return own if request.user.is_superuser else (*own, "is_superuser")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The password of a superuser is the way to be one, too.
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return not is_above and super().has_change_permission(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002 - Django's call
        """Who sets another's password could act under their name: it is on record like any change of a person."""
        with transaction.atomic():
            person = self.get_object(request, id)
            before = person.password if person else ""
            response: HttpResponse = super().user_change_password(request, id, form_url)
            if person is not None and Person.objects.values_list("password", flat=True).get(pk=person.pk) != before:
                audit.record(
                    "person.password_set",
                    now=DATABASE_CLOCK.now(),
                    actor=person_of(request),
                    subject=person,
                )
        return response

    def save_model(self, request: HttpRequest, obj: Person, form: Any, change: bool) -> None:
        form.state_before = _state(Person.objects.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if "on_lanes" in form.cleaned_data:
            memberships.set_on_lanes(form.instance, _pairs(form.cleaned_data["on_lanes"]))
        before, after = form.state_before or {}, _state(form.instance)
        changed = sorted(name for name in after if before.get(name) != after[name])
        if changed:
            audit.record(
                "person.changed" if change else "person.added",
                now=DATABASE_CLOCK.now(),
                actor=person_of(request),
                subject=form.instance,
                before={name: before[name] for name in changed} if change else None,
                after={name: after[name] for name in changed},
            )


def _state(person: Person) -> dict[str, Any]:
    """What is kept of a person in the audit. No password, not even its hash."""
    roles = sorted(person.groups.values_list("name", flat=True))
    lanes = LaneRole.objects.filter(person=person).values_list("role__name", "lane__name")
    on_lanes = sorted(f"{role} on {lane}" for role, lane in lanes)
    return {name: getattr(person, name) for name in SHOWN} | {"roles": roles, "lane_roles": on_lanes}


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
