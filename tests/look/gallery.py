"""A page with every component on it, for screenshots and for axe. Samples only; nothing here is measured."""

from datetime import UTC, datetime, timedelta

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path

from queue_core.states import PERSONS_HOLD_REASONS
from reviewboard.drawing import LayerPart, Mark, Series, layer_bar, line_chart
from reviewboard.live import LiveVersion, page_or_partial
from reviewboard.shapes import (
    Check,
    Conflict,
    DemoStep,
    DemoStrip,
    Figure,
    FigurePart,
    GateRow,
    Headline,
    LifeStep,
    NextStep,
    Pager,
    Progress,
    StageStep,
    Tone,
)
from tests.look.living import act, living

NOW = datetime(2026, 3, 14, 4, 52, 7, tzinfo=UTC)
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '" onmouseover=alert(1) x="',
    "<a hx-get=/admin/logout/ hx-trigger=load>free</a> {{7*7}}",
    "safe \u202egnp.exe",
    "ok\u200b",
    "\u2067never closed",
    "e" + "\u0301" * 1000,
    "שלום world 123",
    "family 👨‍👩‍👧‍👦 and 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "bell\x07 and nul-like \x01",
]


class HoldForm(forms.Form):
    reason = forms.ChoiceField(
        label="Why", choices=[(one.value, one.label) for one in PERSONS_HOLD_REASONS], widget=forms.RadioSelect
    )
    note = forms.CharField(
        label="Note", required=False, widget=forms.Textarea(attrs={"rows": 3}), help_text="For the log."
    )
    until = forms.CharField(label="Until", required=False)


class RaiseForm(forms.Form):
    reason = forms.CharField(label="Reason", min_length=5, help_text="It is frozen beside the figures.")


def _ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


def parts() -> list[LayerPart]:
    minutes = timedelta(minutes=1)
    return [
        LayerPart("people", "with people", 312, 51 * minutes, "A reviewer decides."),
        LayerPart("running", "running", 10, minutes / 6, "Its call ends."),
        LayerPart("held", "held by Olga", 2_940, 180 * minutes, "A lead starts the probe."),
        LayerPart("backoff", "in back-off", 88, 9 * minutes, "Its back-off ends."),
        LayerPart("too_late", "too late for the model", 41, 70 * minutes, "A person takes it."),
        LayerPart("lease_over", "lease over", 3, 2 * minutes, "The next claim takes it over."),
        LayerPart("no_workers", "no workers", 0, None, "A worker starts."),
        LayerPart("stage_full", "stage full (cap 10)", 640, 33 * minutes, "A lead raises the stage."),
        LayerPart("ready", "ready", 75, minutes, "It is next in turn."),
    ]


def figures() -> list[Figure]:
    return [
        Figure("Oldest wait", [FigurePart("1 min 4 s", "ready"), FigurePart("3 h 0 min", "held", Tone.BAD)]),
        Figure(
            "Pass their deadline in the next hour",
            [FigurePart("310", "all"), FigurePart("4", "severity 3", Tone.BAD)],
            note="2,940 by 04:14 if nothing starts",
        ),
        Figure("Decided against arriving, a minute", [FigurePart("0", "decided"), FigurePart("198", "arriving")]),
        Figure("Waiting for people", [FigurePart("5.2 h", "of work")], note="at 60 items an hour", is_estimate=True),
    ]


def kept_figures() -> list[Figure]:
    return [Figure("Oldest wait", [FigurePart("41 s", "ready")], kept_from=_ago(minutes=3)), *figures()[1:]]


def headlines() -> list[Headline]:
    return [
        Headline(
            "posts", "hold", "on hold", Tone.HOLD, "automatic: the model was unavailable", _ago(hours=3), "posts", "/"
        ),
        Headline(
            "images",
            "growing",
            "GROWING by 198/min",
            Tone.BAD,
            "arriving 310/min, decided 112/min",
            _ago(minutes=41),
            "images",
            "/",
        ),
        Headline(
            "comments",
            "no-progress",
            "no progress",
            Tone.WARN,
            "work waits, nothing was completed for 6 min",
            _ago(minutes=6),
            "comments",
            "/",
        ),
        Headline("reviews", "running", "running at stage 2", Tone.GOOD, "", _ago(minutes=12), "reviews", "/"),
        Headline(
            "chat",
            "nobody",
            "nobody is working",
            Tone.BAD,
            "room in the stage, no worker seen",
            _ago(minutes=2),
            "chat",
            "/",
        ),
    ]


def stages() -> list[StageStep]:
    return [
        StageStep(1, "Probe", "done", "2", note="raised by Olga"),
        StageStep(
            2,
            "Trickle",
            "current",
            "10",
            "60 claims per minute",
            soak=[Progress("Completions", "14 of 20 completions", 14, 20), Progress("Time", "5 of 5 minutes", 5, 5)],
        ),
        StageStep(3, "Half", "next", "50"),
        StageStep(4, "Steady", "later", "200"),
    ]


def gate() -> list[GateRow]:
    answers, rightly = "Does it answer?", "Does it answer rightly?"
    return [
        GateRow("Errors", "2.1 %", "≤ 10 %", "94", "good", "good", answers),
        GateRow("Timeouts", "14.0 %", "≤ 10 %", "94", "bad", "over the limit", answers),
        GateRow("Stale answers", "0 %", "≤ 10 %", "3", "inconclusive", "too few", answers),
        GateRow("Usual call (p95)", "0.9 s", "≤ 2 s", "94", "good", "good", answers),
        GateRow("Share rejected", "12 %", "usual 11 % ± 5", "80", "good", "as usual", rightly),
    ]


def life() -> list[LifeStep]:
    return [
        LifeStep("Added", Tone.IDLE, _ago(hours=2)),
        LifeStep("Waited", Tone.IDLE, _ago(hours=2), "41 min 10 s"),
        LifeStep(
            "Claimed by w3, fence 1",
            Tone.INFO,
            _ago(minutes=79),
            "30 s",
            ["stage 1, run 12", "timed out: effect unknown"],
        ),
        LifeStep("Waited in back-off", Tone.WARN, _ago(minutes=78), "5 s"),
        LifeStep("Claimed by w1, fence 2", Tone.INFO, _ago(minutes=70), "0.8 s", ["verdict: offensive 0.62"]),
        LifeStep("With people", Tone.HOLD, _ago(minutes=70), "70 min", ["grey zone 0.45 to 0.85"], is_open=True),
    ]


def chart() -> object:
    times = [_ago(minutes=180 - 3 * i) for i in range(60)]
    held = [None if i < 12 else (i - 12) * 3.75 for i in range(60)]
    ready = [4 + (i % 7) * 1.5 if i < 12 else 2 + (i % 4) for i in range(60)]
    marks = [Mark(times[12], "hold", "on hold"), Mark(times[44], "stage", "probe")]
    return line_chart(
        "Oldest wait", times, [Series("a", "ready", ready), Series("b", "held", held)], unit="minutes", marks=marks
    )


def strip() -> DemoStrip:
    return DemoStrip(
        steps=[
            DemoStep("Start the probe", True),
            DemoStep("See the gate", False, "/"),
            DemoStep("Raise", False),
            DemoStep("Decide one item", False),
        ],
        conditions=[("up", "up"), ("slow", "slow"), ("down", "down"), ("wrong", "wrong")],
        condition="up",
        url="/",
        notes=["A call takes about 0.8 s here, and soaks are short."],
    )


def gallery(request: HttpRequest) -> HttpResponse:
    context = {
        "nav": "board",
        "demo_strip": strip(),
        "headlines": headlines(),
        "headline": Headline(
            "posts",
            "hold",
            "on hold",
            Tone.HOLD,
            "automatic: the model was unavailable",
            _ago(hours=3),
            "posts",
            level=2,
        ),
        "step": NextStep("Start the probe: 2 calls at once.", "Start the probe", "#raise", "You may, and Ada and Lin."),
        "quiet": NextStep("Nothing to do: it moves by itself at 05:16."),
        "figures": figures(),
        "kept": kept_figures(),
        "bar": layer_bar(parts()),
        "stages": stages(),
        "gate": gate(),
        "checks": [
            Check("Workers seen", True, "3, the last 2 s ago"),
            Check("Broker reachable", True),
            Check("The desk has room", False, "5.2 h of work wait"),
            Check("A second person is available", None),
        ],
        "life": life(),
        "chart": chart(),
        "conflict": Conflict(
            "The stage was raised meanwhile.",
            "Lin",
            _ago(seconds=20),
            [("Stage", "3"), ("Cap", "50")],
            "/",
            "See the lane",
        ),
        "pager": Pager("?b=1", "?a=1", "Jobs 51 to 100"),
        "hold_form": HoldForm(),
        "bad_form": RaiseForm({"reason": "no"}),
        "hostile": HOSTILE,
        "until": NOW + timedelta(minutes=8),
        "soon": NOW + timedelta(seconds=45),
        "typed": [("note", "It reads like a threat,\nbut it is a song.")],
        "states": ["WAITING", "LEASED", "DONE", "DEAD"],
    }
    version = LiveVersion.of(NOW, context["figures"])
    return page_or_partial(request, "gallery/gallery.html", "live", context, version=version)


def item(request: HttpRequest) -> HttpResponse:
    context = {"as_of": NOW, "nav": "desk", "until": NOW + timedelta(minutes=8), "life": life(), "text": ITEM_TEXT}
    return render(request, "gallery/item.html", context)


def empty(request: HttpRequest) -> HttpResponse:
    return HttpResponse("sample")


ITEM_TEXT = (
    "You lot never learn.\nGive it a rest, or I will come round and switch the router off myself. 😤\n\nשלום world"
)

urlpatterns = [
    path("", gallery, name="board"),
    path("desk/", item, name="desk"),
    path("jobs/", empty, name="jobs"),
    path("outages/", empty, name="outages"),
    path("deliveries/", empty, name="deliveries"),
    path("living/", living),
    path("act/", act),
    path("", include("reviewboard.urls_account")),
    path("admin/", include(([path("", empty, name="index")], "admin"))),
]
handler403 = "reviewboard.views.errors.permission_denied"
handler404 = "reviewboard.views.errors.page_not_found"
handler500 = "reviewboard.views.errors.server_error"
