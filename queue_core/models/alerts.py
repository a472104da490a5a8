from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane, ModelConnection, name_validator
from queue_core.states import AlertChannel, AlertKind, AlertPhase


def every_kind() -> list[str]:
    return list(AlertKind.values)


class AlertWatch(models.Model):
    """The one row by which watchers take turns: whoever moves its time looks, and writes only if nobody did since."""

    watched_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.watched_at:%Y-%m-%d %H:%M:%S}"


class AlertEpisode(models.Model):
    """One time in which something asked for people: begun once, acknowledged at most once, over once.

    `subject` says what it is about, so that the same thing is one episode however often it is seen.
    """

    kind = models.CharField(_("kind"), max_length=20, choices=AlertKind)
    subject = models.CharField(max_length=40)
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+")
    connection = models.ForeignKey(ModelConnection, models.PROTECT, null=True, related_name="+")
    params = models.JSONField(default=dict)
    begun_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(over_at__isnull=True), name="alert_open_once_a_subject"
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by__isnull=True)
                | Q(acknowledged_at__isnull=False, acknowledged_by__isnull=False),
                name="alert_acknowledged_by_somebody",
            ),
        ]
        indexes = [models.Index(fields=["-begun_at", "-id"], name="alert_time")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class AlertSettings(models.Model):
    """What is an alert in one lane. A lane without a row has every kind."""

    lane = models.OneToOneField(Lane, models.PROTECT, related_name="alert_settings", verbose_name=_("lane"))
    kinds = models.JSONField(_("alerts"), default=every_kind, blank=True)
    least_passing = models.PositiveIntegerField(
        _("least tickets that pass their deadline"),
        default=1,
        validators=[MinValueValidator(1)],
        help_text=_("Fewer tickets than this whose deadline passes within the hour are no alert."),
    )
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("alerts of a lane")
        verbose_name_plural = _("alerts of lanes")
        ordering = ["lane__name"]

    def __str__(self) -> str:
        return str(self.lane)


class AlertSubscription(models.Model):
    """Which mail a person gets. A lead or administrator with no row at all gets every kind of every lane."""

    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="alert_subscriptions", verbose_name=_("person")
    )
    lane = models.ForeignKey(
        Lane, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("lane"),
        help_text=_("Empty: every lane, and what belongs to none."),
    )  # fmt: skip
    kinds = models.JSONField(_("alerts"), default=every_kind, blank=True)
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("mail about alerts")
        verbose_name_plural = _("mail about alerts")
        constraints = [
            models.UniqueConstraint(
                fields=["person", "lane"],
                nulls_distinct=False,
                name="alert_subscription_once",
                violation_error_message=_("This person has a row for this lane already."),
            )
        ]

    def __str__(self) -> str:
        return f"{self.person} {self.lane or '*'}"


class AlertHook(models.Model):
    """A webhook that alerts are posted to. Its secret is named here, never stored: `secret_env` says where."""

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    address = models.URLField(_("address"), max_length=500)
    secret_env = models.CharField(
        _("secret's environment variable"),
        max_length=100,
        help_text=_("The name of the environment variable that holds the signing secret (whsec_...)."),
    )
    lane = models.ForeignKey(
        Lane, models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("lane"),
        help_text=_("Empty: every lane, and what belongs to none."),
    )  # fmt: skip
    kinds = models.JSONField(_("alerts"), default=every_kind, blank=True)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    version = models.PositiveIntegerField(default=1, editable=False)

    class Meta:
        verbose_name = _("webhook for alerts")
        verbose_name_plural = _("webhooks for alerts")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class AlertNotice(models.Model):
    """One message about one phase of an episode to one person or webhook: sent once, or given up after some tries."""

    episode = models.ForeignKey(AlertEpisode, models.PROTECT, related_name="notices")
    phase = models.CharField(max_length=10, choices=AlertPhase)
    channel = models.CharField(max_length=10, choices=AlertChannel)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    hook = models.ForeignKey(AlertHook, models.PROTECT, null=True, related_name="+")
    key = models.UUIDField(unique=True)
    due_at = models.DateTimeField(help_text="not tried before this; moved on by whoever tries")
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    given_up_at = models.DateTimeField(null=True)
    fault = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        verbose_name = _("notice of an alert")
        verbose_name_plural = _("notices of alerts")
        constraints = [
            models.UniqueConstraint(
                fields=["episode", "phase", "channel", "person", "hook"],
                nulls_distinct=False,
                name="alert_notice_once",
            ),
            models.CheckConstraint(
                condition=Q(channel=AlertChannel.MAIL, person__isnull=False, hook__isnull=True)
                | Q(channel=AlertChannel.HOOK, person__isnull=True, hook__isnull=False),
                name="alert_notice_has_one_receiver",
            ),
        ]
        indexes = [
            models.Index(
                fields=["due_at", "id"],
                name="alert_notice_due",
                condition=Q(sent_at__isnull=True, given_up_at__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.episode_id} {self.phase} {self.channel}"
