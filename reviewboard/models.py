"""Rows of the site itself: its people, and the demo's model."""

import zoneinfo

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from queue_core.models import ModelConnection


def validate_zone(name: str) -> None:
    if name not in zoneinfo.available_timezones():
        raise ValidationError(_("%(name)s is no time zone of the IANA list."), params={"name": name})


class Person(AbstractUser):
    """Somebody who signs in. What they may do comes from their groups."""

    timezone = models.CharField(_("time zone"), max_length=64, default="UTC", validators=[validate_zone])
    language = models.CharField(
        _("language"), max_length=10, blank=True, default="", help_text=_("Empty: what the browser asks for.")
    )
    shortcuts = models.CharField(
        _("keyboard shortcuts"),
        max_length=7,
        default="letters",
        choices=[("letters", _("letters")), ("alt", _("Alt and letters")), ("off", _("off"))],
    )

    class Meta(AbstractUser.Meta):
        verbose_name = _("person")  # type: ignore[assignment]
        verbose_name_plural = _("people")  # type: ignore[assignment]


class DemoModel(models.Model):
    """How the demo's model behaves right now. Demo lanes only; set by the demo strip and `manage.py model`."""

    class Condition(models.TextChoices):
        UP = "up", _("up")
        SLOW = "slow", _("slow")
        DOWN = "down", _("down")
        WRONG = "wrong", _("wrong")

    connection = models.OneToOneField(ModelConnection, models.CASCADE, related_name="demo_model")
    condition = models.CharField(max_length=5, choices=Condition, default=Condition.UP)
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name = _("demo model")
        verbose_name_plural = _("demo models")

    def __str__(self) -> str:
        return f"{self.connection_id} {self.condition}"
