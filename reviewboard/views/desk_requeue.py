"""A group of DEAD jobs requeued from the desk: its preview, and the act on exactly what the preview showed."""

from datetime import datetime

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from queue_core import people
from queue_core.clock import DATABASE_CLOCK
from queue_core.errors import InvalidRequest
from queue_core.figures import snapshot
from queue_core.forecast.backlog import requeued
from queue_core.forecast.reading import order_of, read_forecast
from queue_core.models import Lane
from queue_core.people import GroupOutcome, GroupPreview
from reviewboard.filters import ItemsFilter
from reviewboard.forecast_text import ForecastTable, table
from reviewboard.item_text import cause_text
from reviewboard.lengths import DEADLINES, SPANS, length_of
from reviewboard.shapes import Conflict
from reviewboard.views.access import lane_to_requeue, lanes_seen, named
from reviewboard.views.permits import needs, person_of


class RequeueGroupForm(forms.Form):
    fingerprint = forms.CharField(widget=forms.HiddenInput, max_length=64)
    first = forms.ChoiceField(label=gettext_lazy("First new deadline"), choices=DEADLINES, initial="4h")
    span = forms.ChoiceField(
        label=gettext_lazy("Spread the deadlines over"),
        choices=SPANS,
        initial="2h",
        help_text=gettext_lazy("The most severe get the nearest ones. Spread, they do not all fall due at once."),
    )
    reason = forms.CharField(
        label=gettext_lazy("Reason"), max_length=500, widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("It stands in the audit of every job."),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@needs("requeue_item")
def requeue_group(request: HttpRequest) -> HttpResponse:
    """The preview of a group, and the act on exactly what the preview showed."""
    chosen = ItemsFilter.read(request.GET, lanes=named(lanes_seen(request, "requeue_item")))
    if not chosen.is_requeueable:
        raise Http404
    lane = lane_to_requeue(request, chosen.lane)
    if request.method != "POST":
        return _preview(request, chosen, lane)
    form = RequeueGroupForm(request.POST)
    if not form.is_valid():
        return _preview(request, chosen, lane, form=form, status=422)
    now = DATABASE_CLOCK.now()
    try:
        done = people.requeue_group(
            lane.pk,
            chosen.cause,
            fingerprint=form.cleaned_data["fingerprint"],
            first=now + length_of(form.cleaned_data["first"]),
            span=length_of(form.cleaned_data["span"]),
            person=person_of(request),
            reason=form.cleaned_data["reason"],
            clock=DATABASE_CLOCK,
        )
    except InvalidRequest as mistake:
        form.add_error(mistake.field if mistake.field in form.fields else None, str(mistake))
        return _preview(request, chosen, lane, form=form, status=422)
    if done.outcome == GroupOutcome.CHANGED:
        return _preview(request, chosen, lane, form=form, status=409)
    messages.success(request, _requeued_text(done))
    return redirect("desk")


def _requeued_text(done: people.GroupRequeued) -> str:
    text = ngettext("%(number)s job was requeued.", "%(number)s jobs were requeued.", done.requeued) % {
        "number": number_format(done.requeued, force_grouping=True)
    }
    if done.passed_over:
        moved = ngettext(
            "%(number)d had moved meanwhile and was left as it is.",
            "%(number)d had moved meanwhile and were left as they are.",
            done.passed_over,
        )
        text = _("%(first)s %(second)s") % {"first": text, "second": moved % {"number": done.passed_over}}
    if done.left:
        rest = ngettext("%(number)s of the group is left.", "%(number)s of the group are left.", done.left) % {
            "number": number_format(done.left, force_grouping=True)
        }
        text = _("%(first)s %(second)s") % {"first": text, "second": rest}
    return text


def _preview(
    request: HttpRequest,
    chosen: ItemsFilter,
    lane: Lane,
    *,
    form: RequeueGroupForm | None = None,
    status: int = 200,
) -> HttpResponse:
    now = DATABASE_CLOCK.now()
    shown = people.preview(lane.pk, chosen.cause, now=now)
    if form is None:
        form = RequeueGroupForm(initial={"fingerprint": shown.fingerprint})
    elif status == 409:
        # What was typed stays; what is confirmed is the group as it is shown now.
        form = RequeueGroupForm({**dict(form.data.items()), "fingerprint": shown.fingerprint})
    context = {
        "nav": "desk",
        "as_of": now,
        "filter": chosen,
        "lane": lane,
        "cause": cause_text(chosen.kind, chosen.cause),
        "preview": shown,
        "rest": shown.total - shown.count,
        "forecast": _forecast(lane, shown, form, now),
        "form": form,
        "conflict": _group_changed(shown) if status == 409 else None,
    }
    return render(request, "desk/requeue_group.html", context, status=status)


def _group_changed(shown: GroupPreview) -> Conflict:
    count = number_format(shown.total, force_grouping=True)
    return Conflict(
        what=_("The group is not what you confirmed: items came to it, left it, or were taken. Nothing was requeued."),
        now_is=[(_("In the group now"), count)],
    )


def _forecast(lane: Lane, shown: GroupPreview, form: RequeueGroupForm, now: datetime) -> ForecastTable | None:
    """The lane's forecast with these jobs back in it, their new deadlines spread as the form says."""
    if not shown.count:
        return None
    chosen = {name: str(form[name].value()) for name in ("first", "span")}
    first = length_of(chosen["first"] if chosen["first"] in dict(DEADLINES) else "4h")
    span = length_of(chosen["span"] if chosen["span"] in dict(SPANS) else "2h")
    joining = requeued(shown.by_severity, order_of(lane), first=first, span=span)
    with snapshot():
        return table(read_forecast(lane, now=now, joining=joining))
