"""The strip that only the demo has: four steps to try, and how the model behaves."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from queue_core.models import Decision, StageRun
from reviewboard.demo.seed import MODEL_OF, POSTS, seeded_at
from reviewboard.models import DemoModel
from reviewboard.shapes import DemoStep, DemoStrip, Text

#: What a condition shows, and where. One that shows nothing new says nothing.
LOOK_AT: dict[str, Text] = {
    DemoModel.Condition.SLOW: gettext_lazy(
        "Slow: most calls time out. On a lane that runs, watch the timeouts in its gate until it puts itself on hold."
    ),
    DemoModel.Condition.DOWN: gettext_lazy(
        "Down: calls are refused. A lane that runs puts itself on hold after five of them; no ticket loses an attempt."
    ),
    DemoModel.Condition.WRONG: gettext_lazy(
        "Wrong: quick and healthy, and every answer turned round. No error shows it, but known answers do: they are "
        "asked each minute, see “Does it answer rightly” in the gate. A lane that runs then puts itself on hold; "
        "recall what the run decided."
    ),
}


def demo_strip(request: HttpRequest) -> dict[str, Any]:
    """Context processor. Nothing outside the demo, for strangers, and in polls, which never draw the strip."""
    if not settings.REVIEWBOARD_DEMO or not request.user.is_authenticated or request.headers.get("X-Live-Poll"):
        return {}
    since = seeded_at()
    if since is None:
        return {}
    return {"demo_strip": _strip(since)}


def _strip(since: datetime) -> DemoStrip:
    model = DemoModel.objects.filter(connection__name=MODEL_OF[POSTS]).first()
    return DemoStrip(
        steps=_steps(since),
        conditions=[(condition.value, condition.label) for condition in DemoModel.Condition],
        condition=model.condition if model else DemoModel.Condition.UP,
        url=reverse("demo_model"),
        notes=[
            *([str(told)] if model and (told := LOOK_AT.get(model.condition)) else []),
            _("Demo calls take about 0.8 seconds, and stages soak for seconds instead of minutes."),
            _("“Slow”, “down” and “wrong” are staged; the scores are those of the real local model."),
        ],
    )


def _steps(since: datetime) -> list[DemoStep]:
    lane = reverse("lane", args=[POSTS])
    runs = StageRun.objects.filter(lane__name=POSTS, started_at__gt=since)
    probe = runs.filter(number=1).first()
    is_raised = runs.filter(number__gt=1).exists()
    has_met = probe is not None and (is_raised or _has_soaked(probe))
    has_decided = Decision.objects.filter(person__isnull=False, decided_at__gt=since).exists()
    return [
        DemoStep(_("Start the probe of Posts"), probe is not None, lane),
        DemoStep(_("See its gate fill"), has_met, lane),
        DemoStep(_("Raise to stage 2"), is_raised, lane),
        DemoStep(_("Decide one item"), has_decided, reverse("desk")),
    ]


def _has_soaked(run: StageRun) -> bool:
    """Enough was decided; the time of the soak is the gate's to show."""
    return Decision.objects.filter(run=run).count() >= run.soak_completions
