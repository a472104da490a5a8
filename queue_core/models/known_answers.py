from django.core.validators import MaxLengthValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import Policy
from queue_core.models.jobs import MAX_DETAIL
from queue_core.models.lanes import Lane, ModelConnection
from queue_core.models.ramp import StageRun
from queue_core.states import AttemptOutcome, Result

LONGEST_TEXT = 10_000


class KnownAnswer(models.Model):
    """A text whose right result is known. It is sent to the lane's model now and then, and never becomes a ticket."""

    lane = models.ForeignKey(Lane, models.PROTECT, related_name="known_answers", verbose_name=_("lane"))
    title = models.CharField(_("title"), max_length=120)
    text = models.TextField(
        _("text"),
        validators=[MaxLengthValidator(LONGEST_TEXT)],
        help_text=_("What the model is asked about. Write one of your own: no person's content belongs here."),
    )
    expected = models.CharField(
        _("right result"),
        max_length=8,
        choices=Result,
        help_text=_("What the lane's policy has to make of the model's answer."),
    )
    is_active = models.BooleanField(_("in use"), default=True)
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("known answer")
        verbose_name_plural = _("known answers")
        ordering = ["lane", "title"]
        constraints = [
            models.UniqueConstraint(fields=["lane", "title"], name="known_answer_title_once_a_lane"),
            models.CheckConstraint(condition=~Q(text="") & ~Q(title=""), name="known_answer_says_something"),
        ]

    def __str__(self) -> str:
        return self.title


class KnownReply(models.Model):
    """One asking of one known answer under one stage run. Closed once; what was expected is kept as it was then."""

    known = models.ForeignKey(KnownAnswer, models.PROTECT, related_name="replies")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(StageRun, models.PROTECT, related_name="known_replies", db_index=False)
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="+", db_index=False)
    connection = models.ForeignKey(ModelConnection, models.PROTECT, related_name="+", db_index=False)
    version = models.PositiveIntegerField()
    expected = models.CharField(max_length=8, choices=Result)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=AttemptOutcome, null=True)
    result = models.CharField(max_length=8, choices=Result, null=True)
    cause = models.CharField(max_length=40, blank=True, default="", db_default="")
    scores = models.JSONField(null=True)
    latency = models.DurationField(null=True)
    model = models.CharField(max_length=200, blank=True, default="", db_default="")
    detail = models.CharField(max_length=MAX_DETAIL, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("reply to a known answer")
        verbose_name_plural = _("replies to known answers")
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome__isnull=True, result__isnull=True)
                | Q(ended_at__isnull=False, outcome__isnull=False),
                name="known_reply_outcome_when_ended",
            ),
        ]
        indexes = [models.Index(fields=["run", "known", "-asked_at"], name="known_reply_run")]

    def __str__(self) -> str:
        return f"{self.known_id} {self.asked_at:%Y-%m-%d %H:%M:%S}"

    @property
    def is_right(self) -> bool | None:
        """None while there is no result: a call that brought none says nothing of whether the model answers rightly."""
        return None if self.result is None else self.result == self.expected
