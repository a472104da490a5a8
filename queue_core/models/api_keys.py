from typing import TYPE_CHECKING

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane, name_validator
from queue_core.models.tickets import MAX_SOURCE

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

    #: Who may act: a person, or a machine by its key.
    type Actor = "AbstractUser | ApiKey"

MOST_CALLS = 60_000


class KeyScope(TextChoices):
    """What a key is for. Each is given by itself; none contains another."""

    SEND = "send", _("send, supersede and withdraw tickets")
    READ = "read", _("read tickets, decisions and the health of lanes")
    APPEAL = "appeal", _("appeal against decisions")
    ERASE = "erase", _("have content erased")
    DELIVERIES = "deliveries", _("replay deliveries; disable, enable and test endpoints")


#: The rights of people that a scope stands for, where a verb asks for one.
RIGHTS_OF_SCOPES = {
    KeyScope.APPEAL: "appeal_decision",
    KeyScope.ERASE: "erase_evidence",
    KeyScope.DELIVERIES: "manage_deliveries",
}


class ApiKey(models.Model):
    """A machine's way in. The key itself is shown once and stored nowhere: here are its first characters and a hash.

    Written by `queue_core.api_keys` and the admin. Revoked once and for all; never deleted, since the audit names it.
    """

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[name_validator])
    prefix = models.CharField(_("begins with"), max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    scopes = models.JSONField(_("scopes"), default=list)
    source = models.CharField(
        _("source"),
        max_length=MAX_SOURCE,
        blank=True,
        default="",
        help_text=_("The key sends and reads tickets of this source only. Empty: of any, which each call names."),
    )
    lanes = models.JSONField(_("lanes"), default=list, blank=True, help_text=_("None chosen: all lanes."))
    rate = models.PositiveIntegerField(
        _("calls per minute"),
        default=1200,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_CALLS)],
        help_text=_("A call that sends many tickets counts once for each 500 of them."),
    )
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True, help_text=_("Empty: it does not."))
    version = models.PositiveIntegerField(default=1, editable=False)
    made_at = models.DateTimeField(_("made"), editable=False)
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+", editable=False, verbose_name=_("made by")
    )
    revoked_at = models.DateTimeField(_("revoked"), null=True, editable=False)
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        null=True,
        related_name="+",
        editable=False,
        verbose_name=_("revoked by"),
    )

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(rate__gte=1, rate__lte=MOST_CALLS),
                name="apikey_rate_in_bounds",
                violation_error_message=_("A key may make 1 to 60,000 calls per minute."),
            ),
            models.CheckConstraint(condition=~Q(name="") & ~Q(prefix="") & ~Q(digest=""), name="apikey_is_named"),
        ]

    def __str__(self) -> str:
        return self.name

    def get_username(self) -> str:
        """The name under which its acts stand in the audit."""
        return f"key {self.name}"

    def has_scope(self, scope: KeyScope) -> bool:
        return scope in self.scopes

    def may_at(self, lane: Lane | int | None) -> bool:
        """Whether the key is for this lane, a row or its id; None asks for all, those to come too."""
        return not self.lanes or (lane.pk if isinstance(lane, Lane) else lane) in self.lanes

    def may(self, right: str, lane: Lane | int | None = None) -> bool:
        """Whether the key stands for a right of people at this lane; None asks for all lanes."""
        is_meant = any(RIGHTS_OF_SCOPES.get(KeyScope(scope)) == right for scope in self.scopes)
        return is_meant and self.may_at(lane)


class ApiKeyUse(models.Model):
    """What every call with a key writes, apart from the key itself, which is read by each and locked by its edits.

    `free_at` is when all calls so far are paid for at the key's rate: how far it lies ahead is what is left of it.
    """

    key = models.OneToOneField(ApiKey, models.CASCADE, primary_key=True, related_name="use")
    free_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    last_address = models.GenericIPAddressField(null=True)

    class Meta:
        verbose_name = _("use of an API key")
        verbose_name_plural = _("uses of API keys")

    def __str__(self) -> str:
        return f"{self.key_id}"
