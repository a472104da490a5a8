from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import Decision, ReasonCode
from queue_core.models.lanes import Lane
from queue_core.models.people import Assignment, Item
from queue_core.models.tickets import Ticket
from queue_core.states import Verdict


class SecondLook(models.Model):
    """What another person decided who did not see how the first had. Insert-only; an erasure may blank its note.

    Where they disagree a lead decides; the decision looked at stays in force until then.
    """

    item = models.OneToOneField(Item, models.PROTECT, related_name="second_look")
    assignment = models.OneToOneField(Assignment, models.PROTECT, related_name="second_look")
    decision = models.OneToOneField(Decision, models.PROTECT, related_name="second_look")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=8, choices=Verdict)
    reason_code = models.ForeignKey(ReasonCode, models.PROTECT, null=True, related_name="+", db_index=False)
    note = models.TextField(blank=True, default="", max_length=4000)
    agrees = models.BooleanField()
    looked_at = models.DateTimeField()

    class Meta:
        verbose_name = _("second look")
        verbose_name_plural = _("second looks")
        indexes = [models.Index(fields=["lane", "looked_at"], name="second_look_lane_time")]

    def __str__(self) -> str:
        return f"{self.item_id} {self.verdict}"


class Appeal(models.Model):
    """Somebody's objection to a decision, once for each decision. Insert-only; an erasure may blank its statement.

    What came of it is the decision that the appeal's item was closed with.
    """

    decision = models.OneToOneField(Decision, models.PROTECT, related_name="appeal")
    item = models.OneToOneField(Item, models.PROTECT, related_name="appeal")
    ticket = models.ForeignKey(Ticket, models.PROTECT, related_name="appeals")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    statement = models.TextField(blank=True, default="", max_length=4000)
    received_at = models.DateTimeField()

    class Meta:
        verbose_name = _("appeal")
        verbose_name_plural = _("appeals")
        indexes = [models.Index(fields=["lane", "received_at"], name="appeal_lane_time")]

    def __str__(self) -> str:
        return f"{self.decision_id}"
