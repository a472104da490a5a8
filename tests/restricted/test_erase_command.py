"""manage.py erase: the same verb as the page, by the system, with a dry run that does it and undoes it."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import AuditEntry, Evidence
from tests.desk.backlog import make_live_lane, now, waiting_now
from tests.people.cast import person

pytestmark = pytest.mark.django_db

GROUND = "asked for by its author"


def erase(*arguments: str) -> str:
    said = StringIO()
    call_command("erase", *arguments, "--reason", GROUND, stdout=said, stderr=StringIO())
    return said.getvalue()


@pytest.fixture
def ticket(db):
    return waiting_now(make_live_lane()).ticket


def test_a_dry_run_says_what_would_be_erased_and_changes_nothing(ticket) -> None:
    said = erase("--source", ticket.source, ticket.external_id, "--dry-run")

    assert f"1: 'test' '{ticket.external_id}': 1 revision would be erased" in said
    assert "1 ticket would be erased. Nothing was changed." in said
    assert Evidence.objects.get().erased_at is None
    assert not AuditEntry.objects.filter(act="ticket.erased").exists()


def test_it_erases_as_the_system_with_the_reason_in_the_audit_and_a_repeat_finds_nothing(ticket) -> None:
    named = ("--source", ticket.source, ticket.external_id, "--yes")

    assert "1 ticket was erased." in erase(*named)

    evidence, entry = Evidence.objects.get(), AuditEntry.objects.get(act="ticket.erased")
    assert (evidence.body, evidence.erased_ground) == ("", GROUND)
    assert (entry.actor, entry.reason, entry.subject_id) == (None, GROUND, str(ticket.pk))
    assert "nothing is left to erase" in erase(*named)


def test_a_file_names_all_of_one_person_and_what_is_kept_or_not_there_is_said_and_fails(ticket, tmp_path) -> None:
    other = waiting_now(ticket.lane, external_id='one, "two"').ticket
    keeper = person("ada", "preserve_evidence")
    people.preserve(
        ticket.pk, person=keeper, authority="A", reference="1", reason="r", until=now() + timedelta(days=9),
        clock=DATABASE_CLOCK,
    )  # fmt: skip
    file = tmp_path / "all.csv"
    file.write_text(f'test,{ticket.external_id}\ntest,"one, ""two"""\ntest,none\n')

    with pytest.raises(CommandError, match="2 tickets were not erased"):
        erase("--file", str(file), "--yes")

    assert dict(Evidence.objects.values_list("ticket_id", "body"))[other.pk] == ""
    assert Evidence.objects.get(ticket=ticket).erased_at is None


@pytest.mark.parametrize(
    "arguments",
    [("t-1", "--yes"), ("--yes",), ("--file", "/none/such", "--yes"), ("--source", "s", "t-1"), ("--file", "-", "t")],
)
def test_a_call_that_names_nothing_or_that_nobody_confirms_changes_nothing(ticket, arguments) -> None:
    with pytest.raises(CommandError):
        erase(*arguments)
    assert Evidence.objects.get().erased_at is None


@pytest.mark.parametrize("line", ["test", "test,a,b", ",a", "test,\0"])
def test_a_line_that_names_no_ticket_is_told_by_its_number(tmp_path, line) -> None:
    file = tmp_path / "odd.csv"
    file.write_text(f"{line}\n")

    with pytest.raises(CommandError, match="Line 1"):
        erase("--file", str(file), "--yes")
