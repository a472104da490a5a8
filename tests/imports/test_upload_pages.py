"""The pages of imports: who finds them, from the file through the dry run to the report, and what is said of limits."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from queue_core import imports, roles
from queue_core.clock import DATABASE_CLOCK
from queue_core.imports import uploading
from queue_core.models import AuditEntry, ImportPart, ImportRefusal, ImportRun, Job, Lane, Presence
from reviewboard.models import Person
from tests.factories import make_lane

pytestmark = pytest.mark.django_db

CSV = 'Post ID;body;when\r\nt1;"<script>a</script>";+1h\r\nt2;=1+1;soon\r\nt3;x;\r\n'.encode("utf-8-sig")


@pytest.fixture
def lane() -> Lane:
    return make_lane(name="posts", cap=None)


@pytest.fixture(autouse=True)
def unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_core.wakeups._send", lambda *_args: None)


def person_in(role: str, name: str = "") -> Person:
    somebody = Person.objects.create_user(name or role)
    roles.assign(somebody, role)
    return somebody


@pytest.fixture
def leo(client: Client) -> Person:
    somebody = person_in("lead", "leo")
    client.force_login(somebody)
    return somebody


def send(client: Client, content: bytes = CSV, name: str = "posts.csv", **fields: str) -> Any:
    return client.post("/imports/", {"file": SimpleUploadedFile(name, content), "source": "forum"} | fields)


def settings(**fields: str) -> dict[str, str]:
    columns = {"column_0": "ticket", "column_1": "evidence", "column_2": "deadline"}
    return {"source": "forum", "lane": "posts", "revision": "1", "delimiter": ";"} | columns | fields


def work(run: ImportRun) -> None:
    imports.work(run.pk, task="w", clock=DATABASE_CLOCK, is_stopping=lambda: False)


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_who_may_not_import_finds_no_such_page_and_no_link(client, leo, role) -> None:
    send(client)
    run = ImportRun.objects.get()
    client.force_login(person_in(role))

    assert "/imports/" not in client.get("/").text
    for path in ("", f"{run.pk}/", f"{run.pk}/refused/"):
        assert client.get(f"/imports/{path}").status_code == 404
    assert send(client).status_code == 404
    for act in ("settle", "begin", "change", "stop", "discard"):
        assert client.post(f"/imports/{run.pk}/{act}/").status_code == 404
        assert client.get(f"/imports/{run.pk}/{act}/").status_code in (404, 405)


def test_from_the_file_through_the_dry_run_to_the_mended_report(client, leo, lane) -> None:
    assert "No file was imported yet" in client.get("/imports/").text
    page = client.get(send(client).url)
    run = ImportRun.objects.get()
    assert "&lt;script&gt;a&lt;/script&gt;" in page.text
    assert "Post ID" in page.text

    assert client.post(f"/imports/{run.pk}/settle/", settings()).status_code == 302
    assert "No worker has started this yet, and none is seen" in client.get(f"/imports/{run.pk}/").text
    Presence.objects.create(kind="worker", name="w", started_at=run.uploaded_at, seen_at=DATABASE_CLOCK.now())
    assert "No worker has started this yet.</p>" in client.get(f"/imports/{run.pk}/").text
    work(run)
    page = client.get(f"/imports/{run.pk}/").text
    assert "Import 2 tickets" in page
    assert "A time is ISO 8601" in page
    assert not Job.objects.exists()

    client.post(f"/imports/{run.pk}/begin/")
    work(run)
    page = client.get(f"/imports/{run.pk}/")
    report = client.get(f"/imports/{run.pk}/refused/")

    assert Job.objects.filter(lane=lane, ticket__source="forum").count() == 2
    assert "The file is deleted. Lines left out are kept for 7 days." in page.text
    assert "2 tickets stored; lines left out: 1" in client.get("/imports/").text
    assert report["Content-Disposition"] == f'attachment; filename="refused-{run.pk}.csv"'
    text = b"".join(report.streaming_content).decode()
    assert "t2;'=1+1;soon;3;deadline;" in text
    assert AuditEntry.objects.filter(act="import.report_taken", actor_id=leo.pk).count() == 1
    again = send(client, text.replace("soon", "+2h").encode(), name="refused.csv")
    assert "_refused_reason" in client.get(again.url).text
    client.post(f"{again.url}settle/", settings())
    run = ImportRun.objects.latest("pk")
    work(run)
    run.refresh_from_db()
    assert run.foretold["stored"] == 1


def test_a_poll_gets_the_progress_and_no_form_and_nothing_when_nothing_changed(client, leo, lane) -> None:
    url = send(client).url
    client.post(f"{url}settle/", settings())
    polled = {"X-Live-Poll": "1", "HX-Request": "true"}

    first = client.get(url, headers=polled)
    second = client.get(url, headers=polled | {"X-Live-Version": first["X-Live-Version"]})

    assert "<form" not in first.text
    assert 'data-live="2"' in first.text
    assert second.status_code == 204
    work(ImportRun.objects.get())
    last = client.get(url, headers=polled).text
    assert ("data-live" in last, "Go on" in last) == (False, True)
    assert "Go on" not in client.get(url).text


def test_another_delimiter_reads_the_header_again(client, leo) -> None:
    url = send(client, b"a,b;c\n1,2;3\n").url

    assert "column_1" in client.get(url).text
    page = client.get(f"{url}?delimiter=%09").text
    assert "a,b;c" in page
    assert "column_1" not in page
    assert client.get(f"{url}?delimiter=x&page=no").status_code == 200


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"column_2": "ticket"}, "Two columns are mapped"),
        ({"column_0": ""}, "No column is"),
        ({"column_1": "evidence.other"}, "Select a valid choice"),
        ({"lane": "nowhere"}, "Select a valid choice"),
        ({"source": ""}, "This field is required"),
        ({"delimiter": "~"}, "is none of ours"),
        ({"revision": "a\x00b"}, "Null characters"),
    ],
)
def test_settings_that_do_not_fit_are_said_and_nothing_is_begun(client, leo, lane, changed, said) -> None:
    url = send(client).url

    answer = client.post(f"{url}settle/", settings(**changed))

    assert answer.status_code == 422
    assert ImportRun.objects.get().state == "uploaded"
    if said != "is none of ours":
        assert said in answer.text


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [(b"", "a.csv", "empty"), (b"\xff\xfe", "a.csv", "empty"), (b"x" * 5001, "a.csv", "larger than")],
)
def test_a_file_that_cannot_be_kept_is_said_with_its_limit_imp_13(
    client, leo, monkeypatch, content, name, said
) -> None:
    """IMP-13"""
    monkeypatch.setattr(uploading, "MOST_BYTES", 5000)

    answer = send(client, content, name)

    assert (answer.status_code, said in answer.text) == (422, True)
    assert not ImportPart.objects.exists()


def test_a_body_above_the_limit_is_answered_before_it_is_read_imp_13(client, leo, monkeypatch) -> None:
    """IMP-13"""
    monkeypatch.setattr("reviewboard.views.uploads.MOST_BYTES", 100)
    monkeypatch.setattr("reviewboard.views.uploads.MOST_AROUND", 100)
    monkeypatch.setattr("reviewboard.views.uploads._upload", lambda _request: pytest.fail("it was read"))

    answer = send(client, b"x" * 1000)

    assert answer.status_code == 413
    assert "At most" in answer.text


def test_an_upload_without_its_token_is_refused(leo) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(leo)

    assert send(strict).status_code == 403
    assert not ImportRun.objects.exists()


@pytest.mark.parametrize("delimiter", ['"', "\n", "\r"])
def test_a_delimiter_that_is_none_is_said(client, leo, lane, delimiter) -> None:
    send(client)

    answer = client.post(f"/imports/{ImportRun.objects.get().pk}/settle/", settings(delimiter=delimiter))

    assert answer.status_code == 422
    assert "neither a quote nor a line end" in answer.text


def test_an_act_that_comes_too_late_says_how_the_import_stands(client, leo, lane) -> None:
    url = send(client).url
    client.post(f"{url}discard/")

    for act in ("begin", "stop", "change", "discard", "settle"):
        answer = client.post(f"{url}{act}/", settings())
        assert (answer.status_code, "discarded" in answer.text) == (409, True)


def test_another_lead_sees_the_run_but_not_its_rows(client, leo) -> None:
    url = send(client).url
    client.force_login(person_in("lead", "ben"))

    page = client.get(url)

    assert "Only leo" in page.text
    assert "Post ID" not in page.text
    assert client.post(f"{url}settle/", settings()).status_code == 404


def test_refused_lines_are_paged_and_numbers_that_are_none_are_not_found(client, leo) -> None:
    url = send(client).url
    run = ImportRun.objects.get()
    ImportRefusal.objects.bulk_create(
        [ImportRefusal(run=run, line=n, field="x", reason=f"reason {n}", outcome="refused") for n in range(1, 121)]
    )

    page = client.get(url).text
    assert ("reason 50<" in page, "reason 51<" in page) == (True, False)
    assert client.get("/imports/99999999999999999999/").status_code == 404
    assert client.get("/imports/999999/refused/").status_code == 404
