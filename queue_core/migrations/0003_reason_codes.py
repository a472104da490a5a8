"""The first reason codes. Administrators change them and add their own; a code once used is retired, not deleted."""

from django.db import migrations

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


def make_codes(apps, schema_editor):
    ReasonCode = apps.get_model("queue_core", "ReasonCode")
    for code, title, clause, public_text in CODES:
        ReasonCode.objects.get_or_create(
            code=code, defaults={"title": title, "clause": clause, "public_text": public_text}
        )


def remove_unused_codes(apps, schema_editor):
    """A code that decisions rest on stays: they are never changed."""
    used = apps.get_model("queue_core", "Decision").objects.filter(reason_code__isnull=False).values("reason_code")
    apps.get_model("queue_core", "ReasonCode").objects.filter(code__in=[row[0] for row in CODES]).exclude(
        pk__in=used
    ).delete()


class Migration(migrations.Migration):
    dependencies = [("queue_core", "0002_roles")]

    operations = [migrations.RunPython(make_codes, remove_unused_codes)]
