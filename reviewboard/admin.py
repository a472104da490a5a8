"""People in the admin. What somebody may do comes from groups; an account is closed, never deleted."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.forms import AdminPasswordChangeForm
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group
from django.db import models, transaction
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core import audit, memberships
from queue_core.admin.kept import KeptAdmin
from queue_core.admin.merging import MergingForm
from queue_core.admin.versioned import person_of, tell_kept, with_loaded
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

# Groups are the roles; a migration makes them, and their permissions are part of the release.
admin.site.unregister(Group)

admin.site.site_title = "Reviewboard"
admin.site.site_header = "Reviewboard"


class OwnPasswordForm(AdminPasswordChangeForm):
    """On record, as when an administrator sets it: whoever else got hold of a session could have done it."""

    def save(self, commit: bool = True) -> Any:
        with transaction.atomic():
            person = super().save(commit)
            audit.record("person.password_set", now=DATABASE_CLOCK.now(), actor=self.user, subject=self.user)
        return person


admin.site.password_change_form = OwnPasswordForm


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


def _pairs(keys: Iterable[str]) -> frozenset[tuple[str, int]]:
    return frozenset((role, int(lane_id)) for role, _colon, lane_id in (key.partition(":") for key in keys))


def _wanted(cleaned: dict[str, Any]) -> memberships.Roles:
    """What a form asks for. A closed account has no role that counts."""
    if not cleaned.get("is_active"):
        return memberships.Roles()
    names = frozenset(group.name for group in cleaned.get("groups", ()))
    return memberships.Roles(names, _pairs(cleaned.get("on_lanes", ())))


@admin.register(Person)
class PersonAdmin(KeptAdmin, PersonAdminBase):
    form = PersonForm
    list_display = ["username", "first_name", "last_name", "roles", "is_active", "is_staff", "last_login"]
    list_filter = ["is_active", "is_staff", "is_superuser", "groups"]
    instead_of_deleting = gettext_lazy(
        "An account is never deleted, since decisions and the audit name it. Take away “Active”: that closes it."
    )
    # Deleting is refused, so that Django's own action for it is not offered.
    actions = ("let_in",)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email", "timezone", "language")}),
        (gettext_lazy("Role"), {"fields": ("is_active", "is_staff", "is_superuser", "groups", "on_lanes")}),
        (gettext_lazy("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

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

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        own = super().get_fieldsets(request, obj)
        return with_loaded(own) if obj is not None and self.has_change_permission(request, obj) else own

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        chosen: dict[str, Any] = {"help_text": EXPLAINED.get(db_field.name, db_field.help_text)}
        if db_field.name == "language":
            languages = [("", _("What the browser asks for")), *settings.LANGUAGES]
            chosen["widget"] = forms.Select(choices=languages)
        if db_field.name == "timezone":
            # All of them, aliases too: a zone that was not offered would be changed by the next save of anything else.
            chosen["widget"] = forms.Select(choices=[(name, name) for name in sorted(available_timezones())])
        if db_field.name == "groups":
            chosen["label"] = _("Roles on every lane")
        return super().formfield_for_dbfield(db_field, request, **{**chosen, **kwargs})

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        # The roles are few. The admin's usual pair of lists has no names that a screen reader could say.
        return super().formfield_for_manytomany(db_field, request, **{"widget": forms.CheckboxSelectMultiple, **kwargs})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # Only a superuser makes another: else every administrator could be one.
        own = super().get_readonly_fields(request, obj)
        return own if request.user.is_superuser else (*own, "is_superuser")

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
        if not change:
            super().save_model(request, obj, form, change)
            return
        tell_kept(request, form)
        # Only what was changed: a password that was set meanwhile is not set back.
        obj.save(update_fields=[name for name in form.edited() if name not in form.audited_as])

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
