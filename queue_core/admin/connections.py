from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from queue_core import configuration, hold
from queue_core.admin.merging import MergingForm
from queue_core.admin.versioned import VersionedAdmin, person_of
from queue_core.clock import DATABASE_CLOCK
from queue_core.connections import build, kinds
from queue_core.contract import lock_lane
from queue_core.errors import ConfigurationFault
from queue_core.models import Lane, ModelConnection
from queue_core.states import HoldReason

FIELDS = [
    "name",
    "kind",
    "address",
    "model",
    "key_env",
    "call_time_limit",
    "total_cap",
    "allow_restricted",
    "options",
]


#: What each kind of this package speaks to. The name comes first: files and messages use it.
KINDS = {
    "local": gettext_lazy("local: the small model that comes along"),
    "openai-decisions": gettext_lazy("openai-decisions: a Decisions API, asked the policy's questions"),
    "openai-moderations": gettext_lazy("openai-moderations: a moderation API with categories of its own"),
    "systemone": gettext_lazy("systemone: a decision-model server, asked the policy's questions"),
    "http": gettext_lazy("http: a JSON endpoint of your own"),
}


class ConnectionForm(MergingForm):
    kind = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        help_text=gettext_lazy(
            "How the model is called, and what it can be asked. docs/connections.md tells them apart."
        ),
        choices=lambda: [(kind, KINDS.get(kind, kind)) for kind in kinds()],
    )

    class Meta:
        model = ModelConnection
        fields = FIELDS
        help_texts = {
            "address": gettext_lazy(
                "Where the server is, with the version of its API, as http://127.0.0.1:8100/v1; for http the endpoint "
                "itself. Empty: OpenAI's own, and none for local. Or env:NAME_BASE_URL, a variable of the environment."
            ),
            "model": gettext_lazy("As the server calls it. Moderations have a usual one."),
            "key_env": gettext_lazy(
                "The name of an environment variable that ends in _API_KEY, set where workers, tickers and web run. "
                "The key itself is never stored. Empty: no key is sent."
            ),
            "call_time_limit": gettext_lazy("After this a call is given up. A lane's lease is longer."),
            "options": gettext_lazy(
                'A JSON object. For http at least where its scores stand: {"scores": {"insult": "/scores/insult"}}. '
                "How many calls one worker makes at once: at_once. docs/connections.md has all of them."
            ),
        }

    def clean(self) -> dict[str, Any]:
        # Lanes before their connection, as claims lock them: the save may have to hold those lanes.
        for lane_id in Lane.objects.filter(connection_id=self.instance.pk).order_by("pk").values_list("pk", flat=True):
            lock_lane(lane_id)
        cleaned = super().clean()
        self._check_that_it_can_be_built(cleaned)
        return cleaned

    def _check_that_it_can_be_built(self, cleaned: dict[str, Any]) -> None:
        if self.errors:
            return
        try:
            build(ModelConnection(**{name: cleaned.get(name) for name in FIELDS}))
        except ConfigurationFault as fault:
            # Kinds of this package name the field; foreign ones may not know our form.
            name = getattr(fault, "field", "")
            self.add_error(name if name in self.fields else "kind", str(fault))


@admin.register(ModelConnection)
class ModelConnectionAdmin(VersionedAdmin):
    form = ConnectionForm
    list_display = ["name", "kind", "model", "address", "call_time_limit", "total_cap", "health_is_good"]
    list_filter = ["kind", "health_is_good", "allow_restricted"]
    search_fields = ["name", "model", "address"]
    instead_of_deleting = gettext_lazy(
        "A connection is never deleted, since attempts name it. Name another one in its lanes, and it is not called."
    )
    readonly_fields = ["health_is_good", "health_checked_at", "health_since", "health_detail"]
    fields = [*FIELDS, *readonly_fields]

    def save_new(self, request: HttpRequest, obj: models.Model, form: Any) -> None:
        super().save_new(request, obj, form)
        self.message_user(request, _("Next: make a lane that calls it, or name it in one."))

    def after_change(self, request: HttpRequest, obj: models.Model, fields: list[str]) -> None:
        hold_lanes(request, obj, fields)


def hold_lanes(request: HttpRequest, row: models.Model, fields: list[str]) -> None:
    """Put on hold what runs on an approval that no longer says what is called, and tell the administrator."""
    held = configuration.lanes_to_hold(row, fields)
    for lane_id in held:
        lane = lock_lane(lane_id)
        hold.for_change(
            lane,
            reason=HoldReason.CONNECTION_CHANGED,
            person=person_of(request),
            now=DATABASE_CLOCK.now(),
        )
    if held:
        text = ngettext(
            "%(lanes)d lane was put on hold: its stage was approved with what you changed. A lead starts the probe.",
            "%(lanes)d lanes were put on hold: their stages were approved with what you changed. "
            "A lead starts the probe.",
            len(held),
        )
        messages.warning(request, text % {"lanes": len(held)})
