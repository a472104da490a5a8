from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.api_keys import ApiKey
from queue_core.models.lanes import Lane


class AuditEntry(models.Model):
    """One act of a person, of a key or of the system, written in the act's own transaction. Insert-only.

    A sealer chains committed rows each second (`audit.sealing`); `number` and `seal` are its columns.
    """

    at = models.DateTimeField()
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", db_index=False)
    key = models.ForeignKey(ApiKey, models.PROTECT, null=True, related_name="+", db_index=False)
    actor_name = models.CharField(max_length=150)
    address = models.GenericIPAddressField(null=True)
    act = models.CharField(max_length=60)
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+", db_index=False)
    subject_type = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=40)
    subject = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="", max_length=4000)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    number = models.BigIntegerField(null=True, unique=True)
    seal = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        constraints = [
            models.CheckConstraint(
                condition=Q(actor__isnull=True) | Q(key__isnull=True), name="audit_by_a_person_or_a_key"
            )
        ]
        indexes = [
            models.Index(fields=["lane", "-id"], name="audit_lane"),
            models.Index(fields=["subject_type", "subject_id"], name="audit_subject"),
            models.Index(fields=["actor", "-id"], name="audit_actor", condition=Q(actor__isnull=False)),
            models.Index(fields=["id"], name="audit_unsealed", condition=Q(number__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.act}"
