"""Every registered page of the admin keeps the house rules, so that a new one cannot forget them."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin as django_admin
from django.contrib.auth.models import Group
from django.contrib.messages import get_messages
from django.test import Client, RequestFactory
from django.urls import reverse

from queue_core import models, roles
from queue_core.admin.kept import KeptAdmin
from queue_core.admin.merging import LOADED, MergingForm
from queue_core.clock import DATABASE_CLOCK
from reviewboard.models import Person
from tests.admin.forms import form_of
from tests.admin.test_admin import ada, admin, lane
from tests.factories import make_ground

__all__ = ["ada", "admin", "lane"]
pytestmark = pytest.mark.django_db
REGISTERED = dict(django_admin.site._registry)
#: Written by verbs alone, whatever an administrator may do elsewhere.
CONTRACT = {
    "state", "fence", "attempts", "lease_until", "result", "run", "hold", "cap", "judged_at", "queued_at", "urgency",
    "digest", "version", "failures", "health_is_good",
}  # fmt: skip
#: Whose pages change nothing: versions that are made and never edited, and what models answered.
UNCHANGED = {models.Policy, models.KnownReply}


def rows(lane: models.Lane) -> dict[type, tuple[Any, dict[str, object]]]:
    """A row of each model that is changed in the admin, and a change of it. A new model needs one here."""
    now = DATABASE_CLOCK.now()
    stage = {"stages-1-cap": "200"}
    key = models.ApiKey.objects.create(name="shop", prefix="rbk_1", digest="x", scopes=["read"], made_at=now)
    models.ApiKeyUse.objects.create(key=key, free_at=now)
    return {
        models.Lane: (lane, {"max_attempts": "5", **stage}),
        models.ModelConnection: (lane.connection, {"call_time_limit": "00:00:20"}),
        models.ReasonCode: (make_ground("insult"), {"title": "Insults"}),
        models.KnownAnswer: (
            models.KnownAnswer.objects.create(lane=lane, title="rude", text="You!", expected="REJECTED"),
            {"is_active": ""},
        ),
        models.Endpoint: (
            models.Endpoint.objects.create(name="shop", address="https://x", kinds=["decision"], created_at=now),
            {"parallel": "8"},
        ),
        models.ApiKey: (key, {"rate": "30"}),
        models.AlertSettings: (models.AlertSettings.objects.create(lane=lane), {"least_passing": "7"}),
        models.AlertSubscription: (
            models.AlertSubscription.objects.create(person=Person.objects.create_user("leo")),
            {"kinds": []},
        ),
        models.AlertHook: (
            models.AlertHook.objects.create(name="pager", address="https://8.8.8.8/x", secret_env="PAGER_SECRET"),
            {"is_enabled": ""},
        ),
        Person: (Person.objects.create_user("rita"), {"email": "rita@example.org"}),
    }


def request_of(person: Person) -> Any:
    request = RequestFactory().get("/")
    request.user = person
    return request


def forms_of(page: Any, request: Any, row: Any) -> list[Any]:
    """The forms of a row's page and of its parts, for a new row where there is none."""
    own = page.get_form(request, row, change=row is not None)
    inner = [formset.form for formset, _inline in page.get_formsets_with_inlines(request, row)]
    return [own, *inner]


def test_each_list_is_searched_and_filtered_and_changes_or_deletes_nothing_adm_02(ada: Person) -> None:
    request, missing = request_of(ada), []
    for model, page in REGISTERED.items():
        actions = set(page.get_actions(request)) - ({"let_in"} if model is Person else set())
        rules = {
            "search": bool(page.get_search_fields(request)),
            "filters": bool(page.get_list_filter(request)),
            "columns": len(page.get_list_display(request)) > 1,
            "no editing in lists": not page.list_editable and not page.save_as and not actions,
            "kept": isinstance(page, KeptAdmin),
            "paged": page.list_per_page <= 100 and page.list_max_show_all <= 200,
            "says what to do instead": "instead_of_deleting" in vars(type(page)) or model is models.KnownReply
            or page.has_delete_permission(request),
            "each action has its right": all(
                action.func.allowed_permissions for action in page.get_actions(request).values()
            ),
        }  # fmt: skip
        missing += [f"{model.__name__}: {rule}" for rule, is_kept in rules.items() if not is_kept]

    assert not missing


def test_a_list_filtered_by_a_nul_is_the_whole_list_and_no_error_imp_07(admin: Client) -> None:
    for model, page in REGISTERED.items():
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for name in ("q", *(str(one) for one in page.list_filter), *(f"{one}__exact" for one in page.list_filter)):
            answer = admin.get(url, {name: "a\0b"})
            assert (answer.status_code, answer.headers["Location"]) == (302, f"{url}?e=1"), (model, name)
        assert admin.get(url, {"e": "1"}).status_code in (200, 403)


def test_each_field_of_each_form_says_what_it_means_and_none_is_the_contracts(ada: Person, lane: models.Lane) -> None:
    root = request_of(Person.objects.create_superuser("root"))
    silent, written = [], []
    for model, (row, _change) in rows(lane).items():
        page = REGISTERED[model]
        for one in (None, row):
            for form in forms_of(page, root, one):
                fields = form.base_fields.items()
                silent += [f"{model.__name__}.{name}" for name, field in fields if not _is_explained(field)]
                named = form._meta.model.__name__
                written += [f"{named}.{name}" for name in CONTRACT & form.base_fields.keys()]
    silent += [
        f"Policy.{name}"
        for name, field in REGISTERED[models.Policy].get_form(root).base_fields.items()
        if not _is_explained(field)
    ]

    assert (sorted(set(silent)), set(written)) == ([], {"Stage.cap"})


def _is_explained(field: Any) -> bool:
    return bool(field.help_text) or field.widget.is_hidden or field.disabled


def test_each_change_is_merged_and_audited_with_before_and_after_and_nothing_is_deleted(
    admin: Client, ada: Person, lane: models.Lane
) -> None:
    request, known = request_of(ada), rows(lane)
    assert known.keys() | UNCHANGED == REGISTERED.keys()
    for model, (row, change) in known.items():
        page = REGISTERED[model]
        [form, *inner] = forms_of(page, request, row)
        assert all(issubclass(one, MergingForm) for one in (form, *inner)), model
        assert LOADED in form.base_fields, model
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[row.pk])

        answer = admin.post(url, form_of(admin, url) | change)

        assert answer.status_code == 302, (model, answer.context["errors"])
        acts = models.AuditEntry.objects.filter(subject_type=model._meta.model_name, subject_id=str(row.pk), actor=ada)
        named = {name for before, after in acts.values_list("before", "after") if before and after for name in after}
        assert {name.replace("stages-1-cap", "stages") for name in change} <= named, model
        if model is not models.AlertSubscription:
            told = admin.post(url.replace("change", "delete"), {"post": "yes"})
            assert str(page.instead_of_deleting) in map(str, get_messages(told.wsgi_request)), model
            assert model.objects.filter(pk=row.pk).exists()


def test_who_is_no_administrator_has_no_page_of_it_even_as_staff(lane: models.Lane) -> None:
    """ADM-09. And each administrator has every page, though no delete."""
    for role in (None, *roles.RIGHTS):
        person = Person.objects.create_user(f"with-{role}", is_staff=True)
        if role:
            person.groups.set([Group.objects.get(name=role)])
        request = request_of(person)
        may = {model.__name__: page.get_model_perms(request) for model, page in REGISTERED.items()}
        is_administrator = role == roles.ADMINISTRATOR
        assert {name for name, rights in may.items() if rights["view"]} == (set(may) if is_administrator else set())
        assert {name for name, rights in may.items() if rights["delete"]} == (
            {"AlertSubscription"} if is_administrator else set()
        )


def test_times_are_shown_and_read_in_the_zone_of_the_person(admin: Client, ada: Person) -> None:
    """IMP-15: a time that is typed without a zone is one of the zone that the page shows."""
    ada.timezone = "Asia/Tokyo"
    ada.save()
    expires = DATABASE_CLOCK.now().replace(hour=20, minute=30, second=0, microsecond=0) + timedelta(days=2)
    key = models.ApiKey.objects.create(
        name="shop", prefix="rbk_1", digest="x", scopes=["read"], made_at=expires, expires_at=expires
    )
    models.ApiKeyUse.objects.create(key=key, free_at=expires)
    url = reverse("admin:queue_core_apikey_change", args=[key.pk])
    there = expires + timedelta(hours=9)

    page = admin.get(url).content.decode()
    assert f'value="{there:%Y-%m-%d}"' in page
    assert 'value="05:30:00"' in page
    sent = form_of(admin, url) | {"expires_at_0": f"{there:%Y-%m-%d}", "expires_at_1": "06:30:00"}
    assert admin.post(url, sent).status_code == 302
    key.refresh_from_db()
    assert key.expires_at == expires + timedelta(hours=1)
