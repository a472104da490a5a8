from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.jobs import Job
from queue_core.models.lanes import Lane
from queue_core.models.tickets import Ticket
from queue_core.states import AssignmentEnd, ItemEnd, ItemKind, PassedAs


class Item(models.Model):
    """Work for people: one job that a person has to look after. `fence` counts its assignments."""

    job = models.ForeignKey(Job, models.PROTECT, related_name="items", db_index=False)
    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="items")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="items", db_index=False)
    kind = models.CharField(max_length=10, choices=ItemKind)
    cause = models.CharField(max_length=40)
    params = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    severity = models.PositiveSmallIntegerField()
    deadline = models.DateTimeField()
    is_hard = models.BooleanField(default=False, db_default=False)
    for_leads = models.BooleanField(default=False, db_default=False)
    fence = models.BigIntegerField(default=0, db_default=0)
    taken_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False)
    taken_until = models.DateTimeField(null=True)
    opened_at = models.DateTimeField()
    queued_at = models.DateTimeField(
        null=True, help_text="The job's: since when its ticket waits. No requeue moves it while the item is open."
    )
    closed_at = models.DateTimeField(null=True)
    closed_as = models.CharField(max_length=10, choices=ItemEnd, null=True)

    class Meta:
        verbose_name = _("item")
        verbose_name_plural = _("items")
        constraints = [
            models.UniqueConstraint(fields=["job"], condition=Q(closed_at__isnull=True), name="item_open_once_a_job"),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, closed_as__isnull=True)
                | Q(closed_at__isnull=False, closed_as__isnull=False, taken_by__isnull=True),
                name="item_end_when_closed",
            ),
            models.CheckConstraint(
                condition=Q(taken_by__isnull=True, taken_until__isnull=True)
                | Q(taken_by__isnull=False, taken_until__isnull=False),
                name="item_taken_by_somebody_until_a_time",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lane", "-severity", "deadline", "id"], name="item_open", condition=Q(closed_at__isnull=True)
            ),
            models.Index(fields=["lane", "opened_at"], name="item_oldest", condition=Q(closed_at__isnull=True)),
            models.Index(
                fields=["lane", "queued_at"],
                name="item_longest",
                condition=Q(closed_at__isnull=True) & ~Q(kind=ItemKind.BLIND),
            ),
            models.Index(fields=["lane", "closed_at"], name="item_closed", condition=Q(closed_at__isnull=False)),
            models.Index(fields=["job"], name="item_job"),
        ]
        permissions = [
            ("lead_desk", _("May decide what was escalated, correct decisions and see the desk's figures")),
            ("view_person_figures", _("May see the desk's figures per person")),
            ("appeal_decision", _("May enter an appeal against a decision")),
        ]

    def __str__(self) -> str:
        return f"{self.pk}"


class Assignment(models.Model):
    """One person's hold on an item, with its own fence and end time. Closed once."""

    item = models.ForeignKey(Item, models.PROTECT, related_name="assignments", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    fence = models.BigIntegerField()
    key = models.UUIDField()
    taken_at = models.DateTimeField()
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ended_as = models.CharField(max_length=12, choices=AssignmentEnd, null=True)

    class Meta:
        verbose_name = _("assignment")
        verbose_name_plural = _("assignments")
        constraints = [
            models.UniqueConstraint(fields=["item", "fence"], name="assignment_once_a_fence"),
            models.UniqueConstraint(
                fields=["item"], condition=Q(ended_at__isnull=True), name="assignment_open_once_an_item"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_as__isnull=True)
                | Q(ended_at__isnull=False, ended_as__isnull=False),
                name="assignment_end_when_ended",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}#{self.fence}"


#: Of a reason for passing an item on.
MOST_REASON = 500


class ItemPass(models.Model):
    """An item that somebody did not decide but skipped, handed over or escalated, and why. Insert-only.

    The reason may quote the content: an erasure blanks it.
    """

    item = models.ForeignKey(Item, models.PROTECT, related_name="passes")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    passed_as = models.CharField(max_length=12, choices=PassedAs)
    to = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False)
    reason = models.TextField(blank=True, default="", max_length=MOST_REASON)
    at = models.DateTimeField()

    class Meta:
        verbose_name = _("passing on of an item")
        verbose_name_plural = _("items passed on")
        constraints = [
            models.CheckConstraint(
                condition=Q(passed_as=PassedAs.HANDED_OVER, to__isnull=False)
                | (~Q(passed_as=PassedAs.HANDED_OVER) & Q(to__isnull=True)),
                name="item_pass_to_somebody_when_handed_over",
            ),
        ]
        indexes = [
            models.Index(fields=["lane", "at"], name="item_pass_lane"),
            models.Index(fields=["person", "at"], name="item_pass_person"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id} {self.passed_as}"
