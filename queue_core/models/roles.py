from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane


class LaneRole(models.Model):
    """A role that somebody has on one lane. A role on every lane is a membership of the role's group.

    Written by `roles.change` alone, which keeps the last lead of a lane and puts each change on record.
    """

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="lane_roles", db_index=False, verbose_name=_("person")
    )
    role = models.ForeignKey("auth.Group", models.PROTECT, related_name="+", verbose_name=_("role"))
    lane = models.ForeignKey(Lane, models.PROTECT, related_name="+", verbose_name=_("lane"))

    class Meta:
        verbose_name = _("role on a lane")
        verbose_name_plural = _("roles on lanes")
        constraints = [models.UniqueConstraint(fields=["person", "lane", "role"], name="lane_role_once")]

    def __str__(self) -> str:
        return f"{self.person_id} {self.role_id} {self.lane_id}"
