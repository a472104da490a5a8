from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from queue_core.models.decisions import Decision
from queue_core.models.lanes import Lane
from queue_core.models.people import Assignment, Item
from queue_core.models.ramp import StageRun
from queue_core.states import Verdict


class BlindCheck(models.Model):
    """What a person decided who did not see that, and how, a run's model had decided the same. Insert-only.

    `decision` is the model's. Where they agree nothing else is written; else a decision of the person's replaces it.
    """

    item = models.OneToOneField(Item, models.PROTECT, related_name="blind_check")
    assignment = models.OneToOneField(Assignment, models.PROTECT, related_name="blind_check")
    decision = models.OneToOneField(Decision, models.PROTECT, related_name="blind_check")
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", db_index=False)
    run = models.ForeignKey(StageRun, models.PROTECT, related_name="blind_checks")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    verdict = models.CharField(max_length=8, choices=Verdict)
    agrees = models.BooleanField()
    checked_at = models.DateTimeField()

    class Meta:
        verbose_name = _("blind check")
        verbose_name_plural = _("blind checks")

    def __str__(self) -> str:
        return f"{self.item_id} {self.verdict}"
