"""The audit holds the client's address, and nobody writes another one into it by a header."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse

from queue_core import audit
from queue_core.models import AuditEntry
from reviewboard.client_address import client_of, networks
from tests.factories import at, make_lane

OURS = networks(["127.0.0.0/8", "::1", "10.0.0.0/8"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("198.51.100.7", "", "198.51.100.7"),
        ("198.51.100.7", "203.0.113.9", "198.51.100.7"),  # not by way of our proxy
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "6.6.6.6, 203.0.113.9", "203.0.113.9"),  # what the client wrote itself stands first
        ("127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"),
        ("127.0.0.1", "10.9.9.9", "10.9.9.9"),
        ("127.0.0.1", "nonsense", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.9, nonsense", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("", "2001:db8::1", "2001:db8::1"),  # a Unix socket
        ("", "", None),
        ("::ffff:203.0.113.9", "", "203.0.113.9"),
        ("127.0.0.1", "1.1.1.1," * 50_000 + "203.0.113.9", "203.0.113.9"),
    ],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy_of_ours(peer, forwarded, client):
    found = client_of(peer, forwarded, OURS)

    assert (str(found) if found else None) == client


def test_without_proxies_a_header_is_not_read():
    assert str(client_of("127.0.0.1", "203.0.113.9", ())) == "127.0.0.1"


def test_a_proxy_that_is_no_network_is_refused_at_the_start():
    with pytest.raises(ImproperlyConfigured, match=r"TRUSTED_PROXIES.*nginx"):
        networks(["nginx"])


@pytest.mark.django_db
def test_every_act_of_a_request_carries_the_clients_address(client, settings, django_user_model):
    settings.BEHIND_PROXY, settings.TRUSTED_PROXIES = True, ["127.0.0.0/8"]
    settings.SECURE_SSL_REDIRECT = False
    person = django_user_model.objects.create_superuser("olga")
    client.force_login(person)

    client.get(reverse("audit_export", args=["csv"]), headers={"X-Forwarded-For": "6.6.6.6, 203.0.113.9"})

    assert AuditEntry.objects.get().address == "203.0.113.9"


@pytest.mark.django_db
def test_an_act_outside_a_request_has_no_address():
    lane = make_lane()
    with audit.acting_from("203.0.113.9"):
        audit.record("lane.held", now=at(0), actor=None, subject=lane)
    audit.record("lane.held", now=at(1), actor=None, subject=lane)

    assert list(AuditEntry.objects.order_by("pk").values_list("address", flat=True)) == ["203.0.113.9", None]
