"""The desk: what waits for people, and the acts that begin there."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.models import Hold, Item, Lane
from queue_core.people import Group, Taken, TakeOutcome
from queue_core.states import ItemKind
from reviewboard.bulk_offers import DESK, offered
from reviewboard.filters import CURSOR, ItemsFilter
from reviewboard.item_page import undo_of
from reviewboard.item_text import cause_text
from reviewboard.live import LiveVersion, page_or_partial, wants_partial
from reviewboard.models import Person
from reviewboard.paging import Order, Page, pager_of, read_page
from reviewboard.reading import with_words
from reviewboard.views.access import item_to_decide, job_to_pull, lanes_seen
from reviewboard.views.permits import needs, person_of
from reviewboard.wellness import hidden_categories

#: A group of more than this is one line only; its items are behind the line.
LARGE_GROUP = 10
PAGE_SIZE = 50
#: In the session: the key of typed text that the server has confirmed, for the next page to forget.
KEPT_CLEAR = "kept_clear"
ORDER = Order("severity", ("-severity", "deadline", "pk"))


@require_safe
@needs("decide_item", "view_board")
def desk(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    either = lanes_seen(request) | lanes_seen(request, "decide_item")
    lanes = list(either.select_related("hold__by", "run"))
    chosen = ItemsFilter.read(request.GET, lanes=[lane.name for lane in lanes])
    shown = [lane for lane in lanes if chosen.lane in ("", lane.name)]
    now = DATABASE_CLOCK.now()
    live = _live(request, person, shown, now)
    context = {"nav": "desk", "filter": chosen, "lanes": lanes, **live}
    version = LiveVersion.of(
        now, live["supply"], live["new"], [(i.pk, i.fence, i.taken_until) for i in live["on_what"]], len(live["handed"])
    )
    if not wants_partial(request):
        context |= _lists(request, person, chosen, shown, now)
        context["bulk_kinds"] = offered(person, DESK)
    return page_or_partial(request, "desk/desk.html", "live", context, version=version)


def _live(request: HttpRequest, person: Person, lanes: Sequence[Lane], now: datetime) -> dict[str, Any]:
    """What the page's poll shows: numbers and names. The lists stand still under the reader's hand."""
    ids = [lane.pk for lane in lanes]
    since = request.GET.get("since", "")
    last = people.open_items(ids).order_by("-pk").values_list("pk", flat=True).first() or 0
    newer = int(since) if since.isascii() and since.isdigit() and len(since) < 19 else last
    return {
        "supply": people.supply(person, ids, now=now),
        "on_what": people.on_what(ids, now=now),
        "handed": list(people.handed_to(person.pk, people.held_by(person.pk, now=now)).values()),
        "since": newer,
        "new": people.open_items(ids).filter(pk__gt=newer).count() if newer < last else 0,
    }


def _lists(
    request: HttpRequest, person: Person, chosen: ItemsFilter, lanes: Sequence[Lane], now: datetime
) -> dict[str, Any]:
    groups = people.groups([lane.pk for lane in lanes], person=person, now=now)
    page = _page(request, chosen, lanes, groups)
    leads = people.for_leads(_lanes_where(person, lanes, people.LEAD))
    held = [lane for lane in lanes if lane.is_on_hold]
    before = people.before_the_deadline(held, person=person, now=now) if held else []
    deciding = _lanes_where(person, lanes, "decide_item")
    yours = people.held_by(person.pk, now=now)
    handed = people.handed_to(person.pk, yours)
    return {
        "yours": [(item, handed.get(item.pk)) for item in yours],
        "undo": undo_of(person, now),
        "leads": with_words(leads, person),
        "takeable": people.takeable([*page.rows, *leads], person),
        "held_lanes": held,
        "before": before,
        "reach": people.reach(held, now=now) if held else None,
        "groups": _group_lines(groups, lanes, _lanes_where(person, lanes, "requeue_item")) if not chosen.kind else [],
        "items": page.rows,
        "pager": pager_of(page, lambda cursor: chosen.url(reverse("desk"), cursor=cursor)),
        "may_decide": people.may_somewhere(person, "decide_item"),
        "deciding": deciding,
        "pulling": deciding & _lanes_where(person, lanes, "pull_job") & {job.lane_id for job in before},
        "may_lead": people.may_somewhere(person, people.LEAD),
        "now": now,
        "kept_clear": request.session.pop(KEPT_CLEAR, ""),
    }


def _lanes_where(person: Person, lanes: Sequence[Lane], right: str) -> frozenset[int]:
    return frozenset(lane.pk for lane in lanes if people.may(person, right, lane))


def _page(request: HttpRequest, chosen: ItemsFilter, lanes: Sequence[Lane], groups: Sequence[Group]) -> Page[Item]:
    items = people.open_items([lane.pk for lane in lanes]).select_related("ticket", "lane", "taken_by")
    if chosen.kind:
        items = items.filter(kind=chosen.kind)
        items = items.filter(cause=chosen.cause) if chosen.cause else items
    else:
        for group in groups:
            if _is_folded(group):
                items = items.exclude(Q(lane_id=group.lane_id, kind=group.kind, cause=group.cause))
    cursor = request.GET.get(CURSOR, "")
    return read_page(items, ORDER, cursor=cursor, filter_hash=chosen.hash, size=PAGE_SIZE)


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group as the desk shows it; `requeue` is the filter of its items, only where they may be requeued together."""

    group: Group
    text: str
    lane: Lane
    hold: Hold | None
    show_url: str
    requeue: str
    is_folded: bool


def _group_lines(groups: Sequence[Group], lanes: Sequence[Lane], requeueing: Collection[int]) -> list[GroupLine]:
    by_id = {lane.pk: lane for lane in lanes}
    dead = [group for group in groups if group.kind == ItemKind.DEAD]
    holds = people.holds_over(dead)
    return [
        _group_line(group, by_id[group.lane_id], holds.get(group), may_requeue=group.lane_id in requeueing)
        for group in groups
        if group.count > 1
    ]


def _group_line(group: Group, lane: Lane, hold: Hold | None, *, may_requeue: bool) -> GroupLine:
    query = ItemsFilter(lane.name, group.kind, group.cause)
    return GroupLine(
        group=group,
        text=cause_text(group.kind, group.cause),
        lane=lane,
        hold=hold,
        show_url=query.url(reverse("desk")) + "#items",
        requeue=query.query() if may_requeue and group.requeueable else "",
        is_folded=_is_folded(group),
    )


def _is_folded(group: Group) -> bool:
    return group.kind == ItemKind.DEAD and group.count > LARGE_GROUP


@require_POST
@needs("decide_item")
def take_next(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    lane = request.POST.get("lane", "")
    named = lanes_seen(request, "decide_item").filter(name=lane) if is_name(lane) else None
    lane_ids = list(named.values_list("pk", flat=True)) if named is not None else None
    taken = people.take_next(
        person=person, lane_ids=lane_ids, without_categories=hidden_categories(person), clock=DATABASE_CLOCK
    )
    return went(request, taken, person)


@require_POST
@needs("decide_item")
def take(request: HttpRequest, pk: int) -> HttpResponse:
    item_to_decide(request, pk)
    return went(request, people.take(pk, person=person_of(request), clock=DATABASE_CLOCK), person_of(request), item=pk)


@require_POST
@needs("pull_job")
def pull(request: HttpRequest, pk: int) -> HttpResponse:
    person = person_of(request)
    job_to_pull(request, pk)
    reason = "taken before its deadline while the lane was on hold"
    return went(request, people.pull(pk, person=person, reason=reason, clock=DATABASE_CLOCK), person)


def is_name(lane: str) -> bool:
    return bool(lane) and "\0" not in lane


def went(request: HttpRequest, taken: Taken, person: Person, *, item: int | None = None) -> HttpResponse:
    """To the item that was taken; else back to the desk (or the item) with a sentence why not."""
    if taken.token is not None:
        return redirect("item", pk=taken.token.item)
    if taken.outcome == TakeOutcome.MISSING:
        raise Http404
    messages.warning(request, not_taken(taken, person))
    return redirect("item", pk=item) if item is not None else redirect("desk")


def not_taken(taken: Taken, person: Person) -> str:
    if taken.outcome == TakeOutcome.HELD_BY_ANOTHER:
        holder = Person.objects.filter(pk=taken.held_by or 0).first()
        name = holder.get_username() if holder is not None else _("somebody else")
        return _("%(name)s was quicker and has it now.") % {"name": name}
    if taken.outcome == TakeOutcome.HANDS_FULL:
        return hands_full(taken.most_held or 0)
    if taken.outcome == TakeOutcome.NOT_FOR_YOU:
        return _(
            "This item is for somebody else: for a lead, for a specialist, or for who had no part in what was decided."
        )
    if taken.outcome == TakeOutcome.ITEM_CLOSED:
        return _("This item is closed: nothing is left to do on it.")
    if taken.outcome == TakeOutcome.NOT_ALLOWED_IN_STATE:
        return _("This ticket does not wait any more: the model has it, it was decided, or its deadline passed.")
    return nothing_for(person)


def hands_full(most: int) -> str:
    return ngettext(
        "You hold %(most)d item already. Decide it or give it back first.",
        "You hold %(most)d items already. Decide one or give it back first.",
        most,
    ) % {"most": most}


def nothing_for(person: Person) -> str:
    """Never "the queue is complete" when it is not."""
    lane_ids = people.lanes_where_may(person, "decide_item")
    there = people.supply(person, lane_ids, now=DATABASE_CLOCK.now())
    if there.held_by_others:
        return ngettext(
            "Nothing for you now: %(number)d item is held by others.",
            "Nothing for you now: %(number)d items are held by others.",
            there.held_by_others,
        ) % {"number": there.held_by_others}
    if there.skipped:
        return ngettext(
            "Nothing for you now: %(number)d item that you skipped waits for somebody else.",
            "Nothing for you now: %(number)d items that you skipped wait for somebody else.",
            there.skipped,
        ) % {"number": there.skipped}
    if there.yours:
        return _("Nothing else to take: you hold all that is open.")
    if there.for_others:
        return _("Nothing for you now: what is open is for leads, for specialists, or for who had no part in it.")
    return _("Nothing is open at the desk.")
