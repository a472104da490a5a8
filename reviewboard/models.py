"""Rows of the site itself: its people, and the demo's model."""

import zoneinfo

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from queue_core.models import ModelConnection


def validate_zone(name: str) -> None:
    if name not in zoneinfo.available_timezones():
        raise ValidationError(_("%(name)s is no time zone of the IANA list."), params={"name": name})


class Person(AbstractUser):
    """Somebody who signs in. What they may do comes from their groups."""

    class TextHidden(models.TextChoices):
        """Which texts the desk shows only when asked."""

        NEVER = "never", _("none: shown at once")
        SEVERE = "severe", _("those of severity 2 and 3")
        ALWAYS = "always", _("all")

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
    images_grey = models.BooleanField(_("show pictures in grey"), default=True, db_default=True)
    images_blurred = models.BooleanField(_("blur pictures until asked"), default=True, db_default=True)
    text_hidden = models.CharField(
        _("texts hidden until asked"),
        max_length=6,
        choices=TextHidden,
        default=TextHidden.NEVER,
        db_default="never",
        help_text=_("The key u, or a click, shows what is hidden or blurred."),
    )
    break_minutes = models.PositiveSmallIntegerField(
        _("offer a break after so many minutes"),
        default=50,
        db_default=50,
        validators=[MaxValueValidator(480)],
        help_text=_("Five minutes without an item are a break. 0: never."),
    )
    break_severe = models.PositiveSmallIntegerField(
        _("offer a break after so many severe items"),
        default=10,
        db_default=10,
        validators=[MaxValueValidator(1000)],
        help_text=_("Items of severity 2 and 3 since the last break. 0: never."),
    )
    hidden_categories = models.CharField(
        _("categories not offered to you"),
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text=_("With commas between them. Take next passes such items over."),
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
