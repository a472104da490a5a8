"""The admin in a browser: axe finds nothing, nothing runs over the edge, and the keyboard reaches what is chosen."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser

from queue_core import models, roles
from queue_core.clock import DATABASE_CLOCK
from reviewboard.models import Person
from tests.admin.test_admin import ada, lane
from tests.browsing import look, pages, signed_in
from tests.factories import make_ground

__all__ = ["ada", "lane"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def open_page(chromium: Browser, live_server, client):
    with pages(chromium, live_server.url) as open_it:
        yield lambda path, who, **options: open_it(path, signed_in(client, who, live_server.url), **options)


@pytest.fixture
def places(ada, lane):
    """The addresses of each kind of page, with a row on it."""
    roles.restore()
    now = DATABASE_CLOCK.now()
    make_ground("insult")
    models.Endpoint.objects.create(name="shop", address="https://x", kinds=["decision"], created_at=now)
    models.AlertSettings.objects.create(lane=lane)
    key = models.ApiKey.objects.create(name="shop", prefix="rbk_1", digest="x", scopes=["read"], made_at=now)
    models.ApiKeyUse.objects.create(key=key, free_at=now)
    Person.objects.create_user("rita")
    return {
        "index": reverse("admin:index"),
        "people": reverse("admin:reviewboard_person_changelist"),
        "person": reverse("admin:reviewboard_person_change", args=[ada.pk]),
        "lane": reverse("admin:queue_core_lane_change", args=[lane.pk]),
        "key-add": reverse("admin:queue_core_apikey_add"),
        "key": reverse("admin:queue_core_apikey_change", args=[key.pk]),
        "revoke": reverse("admin:queue_core_apikey_revoke", args=[key.pk]),
        "keys": reverse("admin:queue_core_apikey_changelist"),
        "policy-add": reverse("admin:queue_core_policy_add"),
        "grounds": reverse("admin:queue_core_reasoncode_changelist"),
        "password": reverse("admin:auth_user_password_change", args=[ada.pk]),
        "history": reverse("admin:queue_core_lane_history", args=[lane.pk]),
        "lanes": reverse("admin:queue_core_lane_changelist"),
        "replies": reverse("admin:queue_core_knownreply_changelist"),
        "connection-add": reverse("admin:queue_core_modelconnection_add"),
        "hooks-add": reverse("admin:queue_core_alerthook_add"),
        "alerts": reverse("admin:queue_core_alertsettings_changelist"),
        "endpoints": reverse("admin:queue_core_endpoint_changelist"),
    }


def test_axe_finds_nothing_on_the_page_of_a_person(open_page, places, ada):
    """The one with most of what is not Django's own: boxes to tick, the zone in the head, what to do instead."""
    page = open_page(places["person"], ada, color_scheme="dark", viewport={"width": 390, "height": 900})

    look(page, "admin-person")


@pytest.mark.long
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing_on_any_page_of_the_admin(open_page, places, ada, scheme, width):
    for name, path in places.items():
        page = open_page(path, ada, color_scheme=scheme, viewport={"width": width, "height": 900})
        look(page, f"admin-{name}")
        page.close()
