"""A living page that a test steers: what its figures are, and how the server answers."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from queue_core.clock import DATABASE_CLOCK
from reviewboard.live import LiveVersion, page_or_partial
from reviewboard.shapes import Headline, Tone


@dataclass
class Steering:
    figure: int = 1
    state: str = "running"
    alarm: str = ""
    is_read_late: bool = False
    poll_status: int = 200
    post_status: int = 200
    polls: int = 0
    posts: list[dict[str, str]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    is_restricted: bool = False
    seconds_left: int = 3600


STEERING = Steering()


def steer_anew() -> Steering:
    STEERING.__init__()  # type: ignore[misc]
    return STEERING


@login_required
def living(request: HttpRequest) -> HttpResponse:
    if request.headers.get("X-Live-Poll"):
        STEERING.polls += 1
        if STEERING.poll_status != 200:
            return HttpResponse("<p>an error page</p>", status=STEERING.poll_status)
    as_of = DATABASE_CLOCK.now() - timedelta(hours=1 if STEERING.is_read_late else 0)
    headline = Headline("posts", STEERING.state, STEERING.state, Tone.INFO, name="posts", alarm=STEERING.alarm)
    context = {
        "headline": headline,
        "figure": STEERING.figure,
        "is_restricted": STEERING.is_restricted,
        "until": DATABASE_CLOCK.now() + timedelta(seconds=STEERING.seconds_left),
    }
    version = LiveVersion.of(as_of, headline, STEERING.figure)
    return page_or_partial(request, "gallery/living.html", "live", context, version=version)


@login_required
def act(request: HttpRequest) -> HttpResponse:
    STEERING.posts.append({name: str(request.POST[name]) for name in request.POST if name != "csrfmiddlewaretoken"})
    STEERING.tokens.append(request.headers.get("X-CSRFToken", ""))
    return render(request, "gallery/acted.html", status=STEERING.post_status)
