"""Bulk acts in a line or two. Lola leads and may make every kind; times are seconds, as in the factories."""

from datetime import timedelta

from queue_core import bulk
from queue_core.bulk import Terms
from queue_core.models import BulkAct, Job
from queue_core.states import BulkKind
from tests.factories import clock
from tests.people.cast import LEAD, person

HOUR = timedelta(hours=1)


def lola(name="lola"):
    return person(name, *LEAD, "reject_in_bulk")


def preview(kind, who, *, jobs=None, when=20):
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs]) if jobs is not None else Job.objects.all()
    return bulk.preview(BulkKind(kind), rows, selection={"rows": "ticked"}, person=who, clock=clock(when))


def confirmed(kind, who, *, jobs=None, when=20, **terms) -> BulkAct:
    shown = preview(kind, who, jobs=jobs, when=when)
    assert shown.act is not None, shown.left_out
    if kind in ("requeue", "move_deadlines"):
        terms.setdefault("first", HOUR)
    answer = bulk.confirm(shown.act.pk, terms=Terms(**terms), reason="the model is back", person=who, clock=clock(when))
    assert answer.outcome == "confirmed", answer
    return shown.act


def work(act, *, when=30, **more):
    return bulk.work(act.pk, clock=clock(when), **more)


def outcomes(act):
    """By job, in the act's order."""
    return dict(act.entries.order_by("place").values_list("job_id", "outcome"))
