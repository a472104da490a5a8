"""What administrators edit. Contract fields and history are not here: verbs write those."""

from queue_core.admin.alerts import AlertHookAdmin, AlertSettingsAdmin, AlertSubscriptionAdmin
from queue_core.admin.api_keys import ApiKeyAdmin
from queue_core.admin.connections import ModelConnectionAdmin
from queue_core.admin.endpoints import EndpointAdmin
from queue_core.admin.grounds import ReasonCodeAdmin
from queue_core.admin.known_answers import KnownAnswerAdmin, KnownReplyAdmin
from queue_core.admin.lanes import LaneAdmin
from queue_core.admin.policies import PolicyAdmin

__all__ = [
    "AlertHookAdmin",
    "AlertSettingsAdmin",
    "AlertSubscriptionAdmin",
    "ApiKeyAdmin",
    "EndpointAdmin",
    "KnownAnswerAdmin",
    "KnownReplyAdmin",
    "LaneAdmin",
    "ModelConnectionAdmin",
    "PolicyAdmin",
    "ReasonCodeAdmin",
]
