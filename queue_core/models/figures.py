from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane


class FigureChange(models.Model):
    """What one statement changed, written in its transaction and folded into the sums below within a second.

    A row of its own instead of a counter: a counter's row would be locked by every worker of the lane until its commit.
    `counts` happened in `minute`; `totals` and `due` are signed. No foreign key: its check would lock the lane's row.
    """

    lane = models.ForeignKey(Lane, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    minute = models.DateTimeField()
    counts = models.JSONField()
    totals = models.JSONField()
    due = models.JSONField()

    class Meta:
        verbose_name = _("change of figures")
        verbose_name_plural = _("changes of figures")

    def __str__(self) -> str:
        return f"{self.lane_id} {self.minute:%H:%M}"


class LaneMinute(models.Model):
    """What happened in one lane in one minute: a number for each code of `queue_core.tally`."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    minute = models.DateTimeField(_("minute"))
    counts = models.JSONField(_("counts"))

    class Meta:
        verbose_name = _("minute of a lane")
        verbose_name_plural = _("minutes of lanes")
        constraints = [models.UniqueConstraint(fields=["lane", "minute"], name="lane_minute_once")]
        indexes = [models.Index(fields=["minute"], name="lane_minute_age")]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.minute:%Y-%m-%d %H:%M}"


class LaneTotal(models.Model):
    """How many of one kind a lane holds now: jobs by state, those that rest, open items by kind."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    code = models.CharField(_("code"), max_length=40)
    number = models.BigIntegerField(_("number"))

    class Meta:
        verbose_name = _("total of a lane")
        verbose_name_plural = _("totals of lanes")
        constraints = [
            models.UniqueConstraint(fields=["lane", "code"], name="lane_total_once"),
            models.CheckConstraint(condition=~Q(code=""), name="lane_total_named"),
        ]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.code}"


class WaitingDue(models.Model):
    """How many WAITING jobs of a lane and severity have their deadline in this minute."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    minute = models.DateTimeField(_("minute"))
    severity = models.PositiveSmallIntegerField(_("severity"))
    number = models.BigIntegerField(_("number"))

    class Meta:
        verbose_name = _("waiting by deadline")
        verbose_name_plural = _("waiting by deadline")
        constraints = [models.UniqueConstraint(fields=["lane", "minute", "severity"], name="waiting_due_once")]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.minute:%Y-%m-%d %H:%M} {self.severity}"


class LaneSample(models.Model):
    """What no sum can tell of a minute that is over: how long the oldest waited, and how many stood in each layer.

    Looked at once a minute by the tick. A minute in which no tick came has none, and a chart shows the gap.
    """

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    minute = models.DateTimeField(_("minute"))
    taken_at = models.DateTimeField(_("taken"))
    oldest_ready = models.DurationField(_("oldest ready"), null=True)
    oldest_held = models.DurationField(_("oldest held"), null=True)
    layers = models.JSONField(_("layers"))

    class Meta:
        verbose_name = _("sample of a lane")
        verbose_name_plural = _("samples of lanes")
        constraints = [models.UniqueConstraint(fields=["lane", "minute"], name="lane_sample_once")]
        indexes = [models.Index(fields=["minute"], name="lane_sample_age")]

    def __str__(self) -> str:
        return f"{self.lane_id} {self.minute:%Y-%m-%d %H:%M}"
