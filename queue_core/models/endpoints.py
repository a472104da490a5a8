from datetime import timedelta

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.api_keys import ApiKey
from queue_core.models.lanes import Lane, name_validator
from queue_core.models.messages import Message
from queue_core.models.tickets import Ticket
from queue_core.states import DeliveryState, EndpointState, MessageKind, TryOutcome

MAX_ADDRESS = 500
#: Of an answer, and of what a library said of a failure.
MAX_DETAIL = 500


class Endpoint(models.Model):
    """A consumer's address, with what it wants to be told.

    The first half is configuration, changed by the verbs of `relay.endpoints` alone. The second half is the circuit,
    written by whoever sends: one dead consumer costs a look now and then and delays no other.
    """

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    address = models.CharField(
        _("address"), max_length=MAX_ADDRESS, help_text=_("https, and reachable from outside unless it is allowed.")
    )
    kinds = models.JSONField(_("messages"), default=list)
    lanes = models.JSONField(_("lanes"), default=list, blank=True, help_text=_("None chosen: all lanes."))
    state = models.CharField(
        _("state"), max_length=10, choices=EndpointState, default=EndpointState.ENABLED, editable=False
    )
    time_limit = models.DurationField(_("time limit of a try"), default=timedelta(seconds=10))
    parallel = models.PositiveSmallIntegerField(
        _("messages at once"), default=4, validators=[MinValueValidator(1), MaxValueValidator(16)]
    )
    max_tries = models.PositiveSmallIntegerField(
        _("tries"),
        default=16,
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text=_("After so many a message is given up: 16 take about two days."),
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("made"), editable=False)
    changed_state_at = models.DateTimeField(null=True, editable=False)
    changed_state_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", editable=False
    )
    changed_state_key = models.ForeignKey(ApiKey, models.PROTECT, null=True, related_name="+", editable=False)

    failures = models.PositiveIntegerField(default=0, editable=False, help_text="failed tries running")
    failing_since = models.DateTimeField(null=True, editable=False)
    opens = models.PositiveIntegerField(default=0, editable=False, help_text="times the circuit opened in a row")
    open_until = models.DateTimeField(null=True, editable=False, help_text="nothing is sent before; then one try")
    last_outcome = models.CharField(max_length=12, choices=TryOutcome, null=True, editable=False)
    last_status = models.PositiveSmallIntegerField(null=True, editable=False)
    last_detail = models.CharField(max_length=MAX_DETAIL, blank=True, default="", editable=False)
    last_delivered_at = models.DateTimeField(null=True, editable=False)
    sender = models.UUIDField(null=True, editable=False, help_text="the one task that sends to it")
    sender_until = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("endpoint")
        verbose_name_plural = _("endpoints")
        ordering = ["name"]
        permissions = [("manage_deliveries", _("May see deliveries, replay them, and disable endpoints"))]
        constraints = [
            models.CheckConstraint(
                condition=Q(time_limit__gte=timedelta(milliseconds=100)) & Q(time_limit__lte=timedelta(minutes=1)),
                name="endpoint_time_limit_in_bounds",
                violation_error_message=_("The time limit of a try is between 0.1 seconds and a minute."),
            ),
            models.CheckConstraint(condition=Q(parallel__gte=1, parallel__lte=16), name="endpoint_parallel_in_1_to_16"),
            models.CheckConstraint(condition=Q(max_tries__gte=1), name="endpoint_max_tries_at_least_one"),
            models.CheckConstraint(
                condition=Q(sender__isnull=True, sender_until__isnull=True)
                | Q(sender__isnull=False, sender_until__isnull=False),
                name="endpoint_sender_until_a_time",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def changed_state_name(self) -> str:
        """Who enabled, disabled or retired it; empty where its consumer did, by an answer."""
        by = self.changed_state_by or self.changed_state_key
        return by.get_username() if by is not None else ""


class EndpointSecret(models.Model):
    """A key that signs for an endpoint. It is derived from SECRET_KEY and `salt`, shown once, and stored nowhere.

    `fingerprint` tells under which of SECRET_KEY and its fallbacks it was made. A row with an end signs until then,
    so that a consumer has time to take the new one.
    """

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="secrets")
    salt = models.UUIDField()
    fingerprint = models.CharField(max_length=16)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+")
    ends_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("secret of an endpoint")
        verbose_name_plural = _("secrets of endpoints")
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint"], condition=Q(ends_at__isnull=True), name="endpoint_secret_lasting_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.endpoint_id} {self.fingerprint}"


class Delivery(models.Model):
    """One message for one endpoint, until it is delivered or given up.

    Ticket, lane, kind and number are the message's, kept here for the indexes. `budget` is the try at which it is
    given up; a replay raises it. `lease` belongs to the sender that has it out, and ends by itself.
    """

    message = models.ForeignKey(Message, models.PROTECT, related_name="deliveries", db_index=False)
    endpoint = models.ForeignKey(Endpoint, models.PROTECT, related_name="deliveries", db_index=False)
    ticket = models.ForeignKey(Ticket, models.PROTECT, null=True, related_name="+", db_index=False)
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+", db_index=False)
    kind = models.CharField(max_length=20, choices=MessageKind)
    number = models.BigIntegerField(null=True)
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.PENDING)
    tries = models.PositiveIntegerField(default=0)
    budget = models.PositiveIntegerField()
    due_at = models.DateTimeField()
    lease = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    last_outcome = models.CharField(max_length=12, choices=TryOutcome, null=True)
    last_status = models.PositiveSmallIntegerField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(fields=["message", "endpoint"], name="delivery_once_an_endpoint"),
            models.CheckConstraint(
                condition=Q(state=DeliveryState.PENDING, ended_at__isnull=True)
                | (~Q(state=DeliveryState.PENDING) & Q(ended_at__isnull=False)),
                name="delivery_end_when_ended",
            ),
            models.CheckConstraint(
                condition=Q(lease__isnull=True, lease_until__isnull=True)
                | Q(lease__isnull=False, lease_until__isnull=False, state=DeliveryState.PENDING),
                name="delivery_leased_while_pending",
            ),
        ]
        indexes = [
            models.Index(
                fields=["endpoint", "due_at", "id"], name="delivery_due", condition=Q(state=DeliveryState.PENDING)
            ),
            models.Index(
                fields=["endpoint", "ticket", "number"],
                name="delivery_ticket_order",
                condition=Q(state=DeliveryState.PENDING, ticket__isnull=False),
            ),
            models.Index(
                fields=["lane", "created_at"],
                name="delivery_open_decision",
                condition=Q(state=DeliveryState.PENDING, kind=MessageKind.DECISION),
            ),
            models.Index(fields=["lease_until"], name="delivery_leased", condition=Q(lease__isnull=False)),
            models.Index(fields=["endpoint", "-id"], name="delivery_endpoint_log"),
            models.Index(fields=["state", "-id"], name="delivery_state_log", condition=~Q(state="delivered")),
            models.Index(fields=["ticket", "id"], name="delivery_ticket"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}->{self.endpoint_id}"


class DeliveryTry(models.Model):
    """One try to deliver. Written before the call, closed once: a sender that vanished leaves one of unknown effect."""

    delivery = models.ForeignKey(Delivery, models.CASCADE, related_name="tried", db_index=False)
    number = models.PositiveIntegerField()
    lease = models.UUIDField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=12, choices=TryOutcome, null=True)
    status = models.PositiveSmallIntegerField(null=True)
    length = models.PositiveIntegerField(null=True, help_text="bytes of the answer that were read")
    duration = models.DurationField(null=True)
    detail = models.CharField(max_length=MAX_DETAIL, blank=True, default="")

    class Meta:
        verbose_name = _("try of a delivery")
        verbose_name_plural = _("tries of deliveries")
        constraints = [
            models.UniqueConstraint(fields=["delivery", "number"], name="delivery_try_once_a_number"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, outcome__isnull=True)
                | Q(ended_at__isnull=False, outcome__isnull=False),
                name="delivery_try_outcome_when_ended",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.delivery_id}#{self.number}"


class RelayMark(models.Model):
    """How far anybody may have read the numbered messages, and what no new number is below of. One row.

    What is beyond it was seen by nobody who pages.
    """

    read_up_to = models.BigIntegerField(default=0)

    class Meta:
        verbose_name = _("mark of the relay")
        verbose_name_plural = _("marks of the relay")

    def __str__(self) -> str:
        return f"{self.read_up_to}"
