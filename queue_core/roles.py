"""The roles as groups, and who has which right. Made by a migration, which keeps its own copy of these lists."""

from typing import TYPE_CHECKING

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.db.models import Q

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

VIEWER = "viewer"
REVIEWER = "reviewer"
#: Looks after restricted evidence. Given beside another role, and to few: nobody has it by being somebody else.
SPECIALIST = "specialist"
LEAD = "lead"
ADMINISTRATOR = "administrator"

_VIEWER = ("view_board",)
_REVIEWER = (*_VIEWER, "view_evidence", "decide_item", "requeue_item", "pull_job", "hold_lane", "appeal_decision")
_SPECIALIST = (*_VIEWER, "view_evidence", "view_restricted", "report_evidence", "preserve_evidence")
_LEAD = (
    *_REVIEWER, "raise_stage", "override_guardrail", "force_policy", "move_deadlines", "manage_outage",
    "recall_decision", "manage_deliveries", "view_auditentry", "import_tickets", "lead_desk",
)  # fmt: skip
#: What the admin asks for. `is_staff`, which opens the admin at all, is set for each person.
_ADMIN = (
    "view_lane", "add_lane", "change_lane",
    "view_stage", "add_stage", "change_stage", "delete_stage",
    "view_modelconnection", "add_modelconnection", "change_modelconnection",
    "view_policy", "add_policy",
    "view_reasoncode", "add_reasoncode", "change_reasoncode",
    "view_knownanswer", "add_knownanswer", "change_knownanswer",
    "view_endpoint", "add_endpoint", "change_endpoint",
    "view_apikey", "add_apikey", "change_apikey",
    "view_alertsettings", "add_alertsettings", "change_alertsettings",
    "view_alertsubscription", "add_alertsubscription", "change_alertsubscription", "delete_alertsubscription",
    "view_alerthook", "add_alerthook", "change_alerthook",
)  # fmt: skip

RIGHTS: dict[str, tuple[str, ...]] = {
    VIEWER: _VIEWER,
    REVIEWER: _REVIEWER,
    SPECIALIST: _SPECIALIST,
    LEAD: _LEAD,
    ADMINISTRATOR: (*_LEAD, "reject_in_bulk", "view_person_figures", "preserve_evidence", "erase_evidence", *_ADMIN),
}
#: The same for the people of the project that queue_core is part of, whatever their model is called.
_PEOPLE = ("view", "add", "change")


def assign(person: "AbstractUser", role: str) -> None:
    """Give a person a role. Roles add up; taking one away is the admin's."""
    person.groups.add(Group.objects.get(name=role))


def restore() -> None:
    """Make the groups what a release says, and leave people's memberships as they are.

    For a database whose rows were emptied or whose groups were edited by hand; safe to run at any time.
    """
    for role, rights in RIGHTS.items():
        group, _is_new = Group.objects.get_or_create(name=role)
        wanted = Q(content_type__app_label="queue_core", codename__in=rights)
        group.permissions.set(Permission.objects.filter(wanted | _people() if role == ADMINISTRATOR else wanted))


def _people() -> Q:
    person = get_user_model()._meta
    codenames = [f"{act}_{person.model_name}" for act in _PEOPLE]
    return Q(content_type__app_label=person.app_label, codename__in=codenames)
