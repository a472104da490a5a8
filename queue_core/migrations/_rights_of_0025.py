"""The five roles with the rights that 0002 to 0025 gave them, and the first reason codes. A copy of what these say."""

from itertools import chain

from django.conf import settings

VIEWER = ["view_board"]
REVIEWER = [*VIEWER, "view_evidence", "decide_item", "requeue_item", "pull_job", "hold_lane", "appeal_decision"]
SPECIALIST = [*VIEWER, "view_evidence", "view_restricted", "report_evidence", "preserve_evidence"]
LEAD = [
    *REVIEWER, "raise_stage", "override_guardrail", "force_policy", "move_deadlines", "manage_outage",
    "recall_decision", "manage_deliveries", "view_auditentry", "import_tickets", "lead_desk",
]
ADMINISTRATOR = [*LEAD, "reject_in_bulk", "view_person_figures", "preserve_evidence", "erase_evidence"]
ROLES = {
    "viewer": VIEWER, "reviewer": REVIEWER, "specialist": SPECIALIST, "lead": LEAD, "administrator": ADMINISTRATOR,
}
#: Of the admin: the model's app and name, and what may be done with it.
ADMIN = [
    ("queue_core", "lane", ["view", "add", "change"]),
    ("queue_core", "stage", ["view", "add", "change", "delete"]),
    ("queue_core", "modelconnection", ["view", "add", "change"]),
    ("queue_core", "policy", ["view", "add"]),
    ("queue_core", "reasoncode", ["view", "add", "change"]),
    (*settings.AUTH_USER_MODEL.lower().split("."), ["view", "add", "change"]),
    ("queue_core", "alertsettings", ["view", "add", "change"]),
    ("queue_core", "alertsubscription", ["view", "add", "change", "delete"]),
    ("queue_core", "alerthook", ["view", "add", "change"]),
    ("queue_core", "knownanswer", ["view", "add", "change"]),
    ("queue_core", "endpoint", ["view", "add", "change"]),
    ("queue_core", "apikey", ["view", "add", "change"]),
]
#: The model that a right stands at, where it is not the lane.
STANDS_AT = {
    "manage_deliveries": "endpoint", "view_auditentry": "auditentry", "lead_desk": "item", "view_person_figures": "item",
    "appeal_decision": "item", "reject_in_bulk": "bulkact", "import_tickets": "importrun",
}

CODES = [
    (
        "insult",
        "Insult",
        "Terms of use, respect for others",
        "Your text insults a person or a group of people. Our terms of use do not allow that.",
    ),
    (
        "threat",
        "Threat",
        "Terms of use, safety of others",
        "Your text threatens somebody or calls for violence. Our terms of use do not allow that.",
    ),
    (
        "spam",
        "Spam",
        "Terms of use, advertising and repeated content",
        "Your text advertises or repeats the same content. Our terms of use do not allow that.",
    ),
    (
        "other",
        "Another breach of the terms",
        "Terms of use",
        "Your text breaks our terms of use. The notice that you received says in which way.",
    ),
]


def make_roles(apps, schema_editor):
    """Permissions are made here too: Django makes them only after all migrations have run, and then finds these."""
    Group = apps.get_model("auth", "Group")
    rights = {role: [("queue_core", STANDS_AT.get(name, "lane"), name) for name in names] for role, names in ROLES.items()}
    rights["administrator"] += [(app, model, f"{act}_{model}") for app, model, acts in ADMIN for act in acts]
    made = {right: _permission(apps, *right) for right in dict.fromkeys(chain(*rights.values()))}
    for role, named in rights.items():
        group, _is_new = Group.objects.get_or_create(name=role)
        group.permissions.add(*[made[right] for right in named])


def remove_roles(apps, schema_editor):
    """Groups only: Django itself keeps the permissions as long as their models are there."""
    apps.get_model("auth", "Group").objects.filter(name__in=ROLES).delete()


def make_codes(apps, schema_editor):
    """Each with its first version, which stays as it was told."""
    ReasonCode = apps.get_model("queue_core", "ReasonCode")
    Version = apps.get_model("queue_core", "ReasonCodeVersion")
    for code, title, clause, public_text in CODES:
        said = {"title": title, "clause": clause, "public_text": public_text}
        ground, _is_new = ReasonCode.objects.get_or_create(code=code, defaults=said)
        Version.objects.get_or_create(ground=ground, version=ground.version, defaults=said)


def _permission(apps, app, model, codename):
    content_type, _is_new = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label=app, model=model
    )
    options = apps.get_model(app, model)._meta
    names = {f"{act}_{model}": f"Can {act} {options.verbose_name_raw}" for act in ("add", "change", "delete", "view")}
    names |= {name: str(text) for name, text in options.permissions}
    permission, _is_new = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=codename, defaults={"name": names[codename]}
    )
    return permission
