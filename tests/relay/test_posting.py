"""Where nothing may be sent to, and how a call ends: always, in time, and with little kept."""

import socket
import threading
import time
from datetime import timedelta

import pytest

from queue_core import relay
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.relay import addresses
from queue_core.states import TryOutcome
from tests.relay.receiver import answer, drip, hang

SHORT = timedelta(milliseconds=400)


def post(url: str, time_limit: timedelta = SHORT) -> relay.Answer:
    return relay.post(url, b"{}", {"content-type": "application/json"}, time_limit=time_limit)


def resolves(monkeypatch, *answers: list[str]) -> list[str]:
    """Each name resolves to the first list, then to the next, ...; the names that were asked for."""
    asked, left = [], list(answers)

    def lookup(host: str, port: int, **_options: object) -> list[tuple[object, ...]]:
        asked.append(host)
        found = left.pop(0) if len(left) > 1 else left[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, port)) for number in found]

    monkeypatch.setattr(addresses, "getaddrinfo", lookup)
    return asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_whk_01(receiver, other, status) -> None:
    receiver.then = answer(status, Location=f"http://127.0.0.1:{other.port}/secret")

    found = post(receiver.url)

    assert (found.outcome, found.status) == (TryOutcome.REDIRECT, status)
    assert len(receiver.requests) == 1
    assert other.requests == []


@pytest.mark.parametrize(
    "number",
    [
        "127.0.0.1", "10.0.0.1", "172.16.5.5", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::a00:1",
        "2002:7f00:1::", "2001:0:7f00:1::", "fec0::1", "2606:4700:4700::5efe:a00:1", "2606:4700::200:5efe:a00:1",
        "::127.0.0.1", "::ffff:0:a00:1", "64:ff9b:1::a00:1", "192.88.99.1", "198.18.0.1", "3fff::1", "168.63.129.16",
        "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
    ],
)  # fmt: skip
def test_an_inner_address_is_refused_however_it_is_written_whk_03(settings, number) -> None:
    settings.QUEUE_CORE_ALLOWED_NETWORKS = []
    url = f"https://[{number}]/" if ":" in number else f"https://{number}/"

    with pytest.raises(InvalidRequest, match="not a public address") as refused:
        relay.check_address(url)

    assert refused.value.field == "address"
    assert post(url).outcome == TryOutcome.FORBIDDEN_ADDRESS


@pytest.mark.parametrize("number", ["93.184.215.14", "2606:4700:4700::1111", "2002:5db8:d70e::"])
def test_a_public_address_is_allowed_with_https_alone(number) -> None:
    host = f"[{number}]" if ":" in number else number

    assert relay.check_address(f"https://{host}/hook?a=b").path == "/hook?a=b"
    with pytest.raises(InvalidRequest, match="only https"):
        relay.check_address(f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "", "consumer.example", "ftp://consumer.example/", "https://", "https://u:p@consumer.example/",
        "https://consumer.example/#x", "https://consumer.example:99999/", "https://consumer.example:0/",
        "https://consumer .example/", "https://consumer.example/\x00", "https://конс.example/", "https://[::1/",
        "https://x.example/" + "a" * 500,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_its_field(url) -> None:
    with pytest.raises(InvalidRequest) as refused:
        relay.check_address(url)

    assert refused.value.field == "address"


def test_a_name_that_leads_inside_is_refused_and_so_is_one_that_leads_to_both(monkeypatch, settings) -> None:
    settings.QUEUE_CORE_ALLOWED_NETWORKS = []
    resolves(monkeypatch, ["93.184.215.14", "10.0.0.1"])

    with pytest.raises(InvalidRequest, match=r"10\.0\.0\.1 is not a public address"):
        relay.check_address("https://consumer.example/")
    assert post("https://consumer.example/").outcome == TryOutcome.FORBIDDEN_ADDRESS


def test_the_connection_is_made_to_the_address_that_was_checked(monkeypatch, receiver) -> None:
    """A name that leads elsewhere the second time it is asked for: nobody asks a second time."""
    asked = resolves(monkeypatch, ["127.0.0.1"], ["127.9.9.9"])

    found = post(f"http://consumer.example:{receiver.port}/hook")

    assert found.outcome == TryOutcome.DELIVERED
    assert asked == ["consumer.example"]
    assert receiver.requests[0].headers["host"] == f"consumer.example:{receiver.port}"


def test_a_name_that_nobody_knows_is_unreachable_and_no_error(monkeypatch) -> None:
    def unknown(*_args: object, **_options: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(addresses, "getaddrinfo", unknown)

    assert post("https://nowhere.example/").outcome == TryOutcome.UNREACHABLE
    with pytest.raises(InvalidRequest, match="cannot be resolved"):
        relay.check_address("https://nowhere.example/")


def test_a_resolver_that_does_not_answer_is_waited_for_no_longer(monkeypatch) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(addresses, "RESOLVE_WITHIN", 0.1)
    monkeypatch.setattr(addresses, "getaddrinfo", lambda *_args, **_options: let_go.wait(10))

    try:
        assert post("https://slow.example/").outcome == TryOutcome.UNREACHABLE
    finally:
        let_go.set()


@pytest.mark.parametrize("behaviour", [hang, drip], ids=["hangs", "drips"])
def test_a_call_ends_in_time_whatever_its_consumer_does(receiver, behaviour) -> None:
    receiver.then = behaviour
    began = time.monotonic()

    found = post(receiver.url)

    assert found.outcome == TryOutcome.TIMEOUT
    assert time.monotonic() - began < 8


def test_a_closed_port_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    assert post(f"http://127.0.0.1:{port}/").outcome == TryOutcome.UNREACHABLE


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(200, "delivered"), (204, "delivered"), (400, "refused"), (404, "refused"), (410, "gone"), (429, "failed"),
     (503, "failed")],
)  # fmt: skip
def test_an_answer_is_judged_by_its_status(receiver, status, outcome) -> None:
    receiver.then = answer(status)

    assert (post(receiver.url).outcome, post(receiver.url).status) == (outcome, status)


def test_of_an_answer_little_is_read_and_of_an_inner_one_nothing_kept_whk_03(receiver, monkeypatch) -> None:
    receiver.then = answer(500, b"secret " * 100_000)

    inner = post(receiver.url)
    monkeypatch.setattr("queue_core.relay.posting.is_allowed_inside", lambda _address: False)
    public = post(receiver.url)

    assert (inner.length, inner.detail) == (2000, "")
    assert public.detail.startswith("secret secret")
    assert len(public.detail) <= 500


def test_what_is_no_network_in_the_setting_is_said(settings) -> None:
    settings.QUEUE_CORE_ALLOWED_NETWORKS = ["10.0.0.0/99"]

    with pytest.raises(ConfigurationFault, match="WEBHOOK_ALLOWED_NETWORKS"):
        relay.check_address("https://10.0.0.1/")
