"""What goes over each wire, and what is read from it."""

import asyncio
import base64
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from openai.types import Decision, ModerationCreateResponse
from openai.types.decision_create_params import DecisionCreateParams
from openai.types.moderation_create_params import ModerationCreateParams
from pydantic import TypeAdapter

from queue_core.admin.connections import ConnectionForm
from queue_core.connections import InputRejected, InvalidAnswer, Misconfigured, Verdict, build
from queue_core.connections.network.options import OptionFault
from queue_core.connections.network.outcomes import NOT_SENT, answer_of_status
from queue_core.connections.network.secret import NO_SECRET
from queue_core.connections.network.sending import Terms, Unreadable, exchange, post_json
from queue_core.connections.network.transport import BEARER, GuardedTransport, Trail
from queue_core.connections.openai_decisions import questions_of, verdict_of
from queue_core.connections.systemone import verdict_of as systemone_verdict_of
from queue_core.questions import read_questions
from reviewboard.model_server import RunningServer
from reviewboard.model_server import wires as stand_in
from tests.connections.raw import plain_server
from tests.connections.wires import KEY, QUESTIONS, WIRES, adapter, answers, asked, row
from tests.factories import T0

PIXEL = "data:image/png;base64," + base64.b64encode(b"\x89PNG not really").decode()


@pytest.mark.parametrize("kind", WIRES)
def test_a_verdict_carries_scores_model_request_id_and_latency(kind: str, model: RunningServer) -> None:
    [good, bad] = answers(adapter(kind, model.url), [asked(1), asked(2, "you idiot")])
    category = WIRES[kind][1]

    assert isinstance(good, Verdict)
    assert isinstance(bad, Verdict)
    assert good.scores[category] < 0.2 < 0.8 < bad.scores[category]  # type: ignore[operator]
    assert good.model in ("gpt-6-luna", "plain-1")
    assert good.request_id
    assert timedelta(0) < good.latency < timedelta(seconds=5)  # type: ignore[operator]


def test_every_question_of_a_policy_brings_its_scores_under_its_own_names(model: RunningServer) -> None:
    for kind in ("openai-decisions", "systemone"):
        [answer] = answers(adapter(kind, model.url), [asked(1, "[[p=0.75]]")])

        assert isinstance(answer, Verdict)
        assert answer.scores["insult"] == 0.75
        assert answer.scores["severity"] == pytest.approx(0.75)
        assert answer.scores["severity=grave"] == pytest.approx(0.5)
        assert answer.scores.keys() >= {"verdict=approve", "verdict=reject", "verdict=unsure", "verdict.confidence"}
        assert answer.usage["total_tokens"] == answer.usage["input_tokens"] + answer.usage["output_tokens"]


def test_the_official_packages_own_types_take_our_requests_and_the_stand_ins_answers(model: RunningServer) -> None:
    answers(adapter("openai-decisions", model.url), [asked(1)])
    answers(adapter("openai-moderations", model.url), [asked(3), asked(4)])
    decided, moderated = (call.body for call in model.calls)

    TypeAdapter(DecisionCreateParams).validate_python(decided, strict=False, extra="forbid")
    TypeAdapter(ModerationCreateParams).validate_python(moderated, strict=False, extra="forbid")
    Decision.model_validate(stand_in.decisions(decided, "up"))
    Decision.model_validate(stand_in.decisions(decided, "refuses"))
    ModerationCreateResponse.model_validate(stand_in.moderations(moderated, "up"))


def test_questions_are_sent_in_the_order_of_the_policy_and_read_back_in_it(model: RunningServer) -> None:
    answers(adapter("openai-decisions", model.url), [asked(1)])

    sent = model.calls[0].body["questions"]
    assert [(question["type"], question["name"]) for question in sent] == [
        ("choice", "verdict"),
        ("predicate", "insult"),
        ("score", "severity"),
    ]
    assert sent[0]["choices"][1] == {"value": "reject", "description": "It breaks a rule."}
    assert sent[2]["levels"] == [{"label": "none"}, {"label": "some"}, {"label": "grave"}]


def test_the_idempotency_key_and_the_fence_travel_with_the_call(model: RunningServer) -> None:
    for kind in WIRES:
        answers(adapter(kind, model.url), [asked(1, fence=7, idempotency_key=f"review-{kind}")])

    assert [(call.idempotency_key, call.fence) for call in model.calls] == [(f"review-{kind}", "7") for kind in WIRES]


def test_one_call_is_one_request_whatever_the_server_answers(model: RunningServer) -> None:
    for fault in ("error", "overloaded", "reset", "gateway_timeout"):
        model.set(fault)
        for kind in WIRES:
            model.forget()
            answers(adapter(kind, model.url), [asked(1)])
            assert len(model.calls) == 1, (fault, kind)


def test_a_moderation_batch_goes_out_in_requests_of_the_configured_size(model: RunningServer) -> None:
    found = answers(
        adapter("openai-moderations", model.url, options={"together": 4}),
        [asked(number, f"[[p=0.{number}]]") for number in range(1, 10)],
    )

    assert sorted(len(call.body["input"]) for call in model.calls) == [1, 4, 4]
    scores = [answer.scores["harassment"] for answer in found if isinstance(answer, Verdict)]
    assert scores == [number / 10 for number in range(1, 10)]


def test_images_are_sent_only_where_the_connection_looks_at_them(model: RunningServer) -> None:
    evidence = json.dumps({"text": "look", "images": [PIXEL]})
    [blind] = answers(adapter("openai-decisions", model.url), [asked(1, evidence=evidence)])
    [seen] = answers(adapter("openai-decisions", model.url, options={"images": True}), [asked(2, evidence=evidence)])

    assert isinstance(blind, InputRejected)
    assert isinstance(seen, Verdict)
    [call] = model.calls
    assert call.body["input"][0]["content"][1] == {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    TypeAdapter(DecisionCreateParams).validate_python(call.body, extra="forbid")


@pytest.mark.parametrize("image", ["https://example.org/x.png", "data:text/html;base64,AAAA", 7, "data:image/png,x"])
def test_no_address_in_evidence_is_handed_on_for_the_server_to_fetch(image: object, model: RunningServer) -> None:
    evidence = json.dumps({"text": "look", "images": [image]})

    [answer] = answers(adapter("openai-decisions", model.url, options={"images": True}), [asked(1, evidence=evidence)])

    assert isinstance(answer, InputRejected)
    assert model.calls == []


@pytest.mark.parametrize("evidence", ["{}", '{"text": "  "}', "no json", json.dumps({"text": "x" * 200_001})])
def test_evidence_without_a_text_that_can_be_judged_is_never_sent(evidence: str, model: RunningServer) -> None:
    for kind in WIRES:
        [answer] = answers(adapter(kind, model.url), [asked(1, evidence=evidence)])
        assert isinstance(answer, InputRejected), kind
    assert model.calls == []


def test_a_kind_that_asks_needs_questions(model: RunningServer) -> None:
    [answer] = answers(adapter("systemone", model.url), [asked(1, questions=())])

    assert isinstance(answer, Misconfigured)
    assert "question" in answer.sentence


def test_a_template_is_filled_and_a_tickets_text_is_never_read_for_places(model: RunningServer) -> None:
    answers(adapter("http", model.url), [asked(1, "{ticket} {model}", ticket="t9", source="forum")])

    assert model.calls[0].body == {"text": "{ticket} {model}", "about": "ticket t9 of forum"}


def test_a_refused_connection_an_unknown_host_and_a_failed_handshake_were_surely_not_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = socket.getaddrinfo

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        """As a resolver that answers at once. Some machines' own ask for 20 seconds whom nobody answers."""
        if "no-such-host" in str(host):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    sentences = [sentence for _error, sentence in NOT_SENT]
    with plain_server() as no_tls:
        for kind in WIRES:
            for address in ("http://127.0.0.1:9", f"https://{no_tls}", "http://no-such-host.invalid"):
                [answer] = answers(adapter(kind, address), [asked(1, limit=10)])
                assert answer.outcome == "unavailable", (kind, address, answer)
                assert answer.detail in sentences, (kind, address, answer)


@pytest.mark.parametrize(
    ("message", "text", "outcome"),
    [
        ("questions: at most 64 questions are supported", "short", "misconfigured"),
        ("choices exceed the maximum of 208", "short", "misconfigured"),
        ("model foo does not support images: unsupported model", "short", "misconfigured"),
        ("input is not valid UTF-8", "short", "input_rejected"),
        ("request body exceeds 64 KiB", "short", "misconfigured"),
        ("This model's maximum context length is 4096 tokens. You requested 5000.", "long " * 20_000, "input_rejected"),
        ("This model's maximum context length is 512 tokens. You requested 900.", "short", "misconfigured"),
        ("the model takes at most 2000 characters", "long " * 20_000, "input_rejected"),
        ("instructions of questions: at most 200 characters", "long " * 20_000, "misconfigured"),
        ("request body exceeds 64 KiB", "long " * 20_000, "input_rejected"),
    ],
)
def test_a_400_that_names_a_limit_of_ours_is_no_tickets_fault(message: str, text: str, outcome: str) -> None:
    ours = 2000 / (2000 + len(text))
    body = json.dumps({"error": {"message": message}}).encode()

    answer = answer_of_status(Trail(True, 400, {}), body, secret=NO_SECRET, now=T0, share_of_ours=ours)

    assert answer.outcome == outcome


def decided(**changes: Any) -> dict[str, Any]:
    body = {"input": "[[p=0.75]]", "questions": questions_of(read_questions(QUESTIONS)), "model": "m"}
    return stand_in.decisions(body, "up") | changes


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("answers",), "none"),
        (("answers", 0), []),
        (("answers", 0, "choice"), "banana"),
        (("answers", 0, "probabilities"), {}),
        (("answers", 0, "probabilities", 0, "value"), "reject"),
        (("answers", 0, "probabilities", 0, "probability"), "0.5"),
        (("answers", 0, "probabilities", 0, "probability"), True),
        (("answers", 0, "confidence"), "high"),
        (("answers", 1, "probability"), None),
        (("answers", 1, "type"), "choice"),
        (("answers", 1, "name"), "threat"),
        (("answers", 2, "probabilities", 0, "label"), "grave"),
        (("answers", 2, "probabilities"), []),
        # Two sure options of one question; levels that are nothing at all, which would read as “none of it”.
        (("answers", 0, "probabilities", 0, "probability"), 0.99),
        (("answers", 2, "probabilities"), [{"label": name, "probability": 0} for name in ("none", "some", "grave")]),
        (("answers", 2, "probabilities", 2, "probability"), 1.0),
    ],
)
def test_an_answer_of_another_shape_than_its_question_is_unreadable(place: tuple[Any, ...], value: object) -> None:
    data = decided()
    part: Any = data
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value

    with pytest.raises(Unreadable):
        verdict_of(data, read_questions(QUESTIONS))


def test_a_refused_question_is_kept_as_refused_while_the_others_count() -> None:
    data = decided()
    data["answers"][1] = {"type": "refusal", "name": "insult"}

    verdict = verdict_of(data, read_questions(QUESTIONS))

    assert verdict.scores["insult"] is None
    assert verdict.scores["severity"] == pytest.approx(0.75)


def test_an_option_without_a_probability_brings_no_score() -> None:
    data = decided()
    data["answers"][0]["probabilities"].pop(1)

    assert "verdict=reject" not in verdict_of(data, read_questions(QUESTIONS)).scores


@pytest.mark.parametrize(
    "probabilities", [[0.2, 0.3, 0.5], {"0": 0.2, "1": 0.3, "2": 0.5}, {"1": 0.2, "2": 0.3, "3": 0.5}]
)
def test_levels_are_read_by_their_order_however_a_server_numbers_them(probabilities: object) -> None:
    questions = read_questions(QUESTIONS[2:])
    answer = {"type": "score", "score": 1.3, "probabilities": probabilities, "confidence": 0.5}

    verdict = systemone_verdict_of({"answers": {"severity": answer}}, questions)

    assert verdict.scores["severity"] == pytest.approx(0.65)
    assert verdict.scores["severity=grave"] == 0.5


@pytest.mark.parametrize(
    ("kind", "changes", "field", "said"),
    [
        ("openai-decisions", {"address": "ftp://x"}, "address", "http"),
        ("openai-decisions", {"address": "https://user:pw@x/v1"}, "address", "password"),
        ("openai-decisions", {"address": "https://x/v1?key=1"}, "address", "query"),
        ("openai-decisions", {"address": "https://@x/v1"}, "address", "user"),
        ("openai-decisions", {"address": "https://x/v1?"}, "address", "query"),
        ("openai-decisions", {"address": "https://x/v1#"}, "address", "fragment"),
        ("openai-decisions", {"address": "http://[::1"}, "address", "http"),
        ("openai-decisions", {"address": "http://x /v1"}, "address", "http"),
        ("openai-decisions", {"address": "http://x\n/v1"}, "address", "http"),
        ("openai-decisions", {"address": "http://good\\@bad/v1"}, "address", "http"),
        ("openai-decisions", {"address": "http://:8100/v1"}, "address", "http"),
        ("openai-decisions", {"address": "http://x:99999/v1"}, "address", "http"),
        ("openai-decisions", {"key_env": KEY}, "key_env", "_API_KEY"),
        ("openai-decisions", {"model": ""}, "model", "model"),
        ("openai-decisions", {"key_env": "SECRET_KEY"}, "key_env", "_API_KEY"),
        ("openai-decisions", {"options": {"at_once": 0}}, "options", "at_once"),
        ("openai-decisions", {"options": {"at_once": "5"}}, "options", "500"),
        ("openai-decisions", {"options": {"atonce": 5}}, "options", "atonce"),
        ("openai-moderations", {"options": {"together": 1000}}, "options", "256"),
        ("systemone", {"address": ""}, "address", "http"),
        ("systemone", {"options": {"sends": "all"}}, "options", "evidence"),
        ("http", {"options": {"request": {"text": "{txt}"}}}, "options", "{txt}"),
        ("http", {"options": {"request": {"a": 1}}}, "options", "{text}"),
        ("http", {"options": {"scores": {}}}, "options", "at least one"),
        ("http", {"options": {"scores": {"insult": "scores.insult"}}}, "options", "pointer"),
        ("http", {"options": {"refused": "refused"}}, "options", "pointer"),
        ("http", {"options": {"headers": {"Authorization": "Bearer x"}}}, "options", "Authorization"),
        ("http", {"options": {"headers": {"X A": "x"}}}, "options", "name of a header"),
        ("http", {"options": {"headers": {"X-Functions-Key": "x"}}}, "options", "key_header"),
        ("http", {"options": {"headers": {"X-Auth": "x"}}}, "options", "key_header"),
        ("http", {"options": {"headers": {"X-A": "x\ny"}}}, "options", "X-A"),
    ],
)
def test_a_connection_that_cannot_work_is_told_at_the_save_by_field(
    kind: str, changes: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(OptionFault, match=said) as fault:
        build(row(kind, "http://127.0.0.1:9", **changes))

    assert fault.value.field == field


def test_a_health_check_says_whether_the_server_can_be_called(model: RunningServer) -> None:
    for kind in WIRES:
        connection = adapter(kind, model.url)
        connection.prepare()
        model.set()
        good = connection.check_health(timedelta(seconds=5))
        told = {}
        for fault in ("down", "unauthorized", "busy", "error", "hang"):
            model.set(fault)
            told[fault] = connection.check_health(timedelta(seconds=0.5 if fault == "hang" else 5))

        assert good.is_good, (kind, good)
        assert not any(health.is_good for health in told.values()), (kind, told)
        assert all(health.detail for health in told.values())


def test_an_answer_that_is_packed_is_not_unpacked() -> None:
    def packed(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx2.ByteStream(b"x" * 100))

    async def ask() -> object:
        transport = GuardedTransport(NO_SECRET, BEARER, httpx2.MockTransport(packed))
        terms = Terms(timedelta(seconds=1), T0, NO_SECRET)
        async with httpx2.AsyncClient(transport=transport) as client:
            return await exchange(lambda: post_json(client, "http://x/", {}, headers={}, terms=terms), terms)

    # In a thread of its own: a browser of another test may have left a loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(asyncio.run, ask()).result(20), InvalidAnswer)


@pytest.mark.django_db
def test_the_admins_form_tells_a_connections_mistake_at_its_field() -> None:
    sent = {"name": "ours", "kind": "http", "address": "http://127.0.0.1:9/x", "call_time_limit": "10", "options": "{}"}
    form = ConnectionForm(sent)

    assert not form.is_valid()
    assert "at least one category" in str(form.errors["options"])
    assert ConnectionForm(sent | {"options": json.dumps({"scores": {"insult": "/p"}})}).is_valid()
