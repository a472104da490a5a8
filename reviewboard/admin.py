"""People in the admin. What somebody may do comes from groups; an account is closed, never deleted."""

from typing import TYPE_CHECKING, Any
from zoneinfo import available_timezones

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core import audit, memberships
from queue_core.admin.versioned import MergingAdmin, person_of, tell_kept
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import LaneRole
from reviewboard import lockout
from reviewboard.models import Person
from reviewboard.own_password import OwnPasswordForm
from reviewboard.person_form import EXPLAINED, PersonForm, lane_roles

if TYPE_CHECKING:
    PersonAdminBase = UserAdmin[Person]
else:
    PersonAdminBase = UserAdmin

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

# Groups are the roles; a migration makes them, and their permissions are part of the release.
admin.site.unregister(Group)

admin.site.site_title = "Reviewboard"
admin.site.site_header = "Reviewboard"


admin.site.password_change_form = OwnPasswordForm


@admin.register(Person)
class PersonAdmin(MergingAdmin, PersonAdminBase):
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
            memberships.set_on_lanes(form.instance, lane_roles(form.cleaned_data["on_lanes"]))
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
