"""What is stored. Rows and their constraints; the rules that write them live in `contract`, `ramp` and `people`."""

from queue_core.models.alerts import (
    AlertEpisode,
    AlertHook,
    AlertNotice,
    AlertSettings,
    AlertSubscription,
    AlertWatch,
)
from queue_core.models.api_keys import ApiKey, ApiKeyUse
from queue_core.models.audit import AuditEntry
from queue_core.models.blind_checks import BlindCheck
from queue_core.models.bulk import BulkAct, BulkEntry
from queue_core.models.decisions import Decision, Policy, ReasonCode, ReasonCodeVersion
from queue_core.models.endpoints import Delivery, DeliveryTry, Endpoint, EndpointSecret, RelayMark
from queue_core.models.figures import FigureChange, LaneMinute, LaneSample, LaneTotal, WaitingDue
from queue_core.models.imports import ImportForeseen, ImportPart, ImportRefusal, ImportRun
from queue_core.models.jobs import Attempt, Job, LateAnswer
from queue_core.models.known_answers import KnownAnswer, KnownReply
from queue_core.models.lanes import Drainer, Lane, ModelConnection, Presence, Stage
from queue_core.models.messages import Message
from queue_core.models.people import Assignment, Item, ItemPass
from queue_core.models.preservation import EvidenceReport, PreservationHold
from queue_core.models.ramp import Hold, Outage, OutageEntry, StageRun
from queue_core.models.recalls import Recall, RecallEntry
from queue_core.models.roles import LaneRole
from queue_core.models.second_looks import Appeal, SecondLook
from queue_core.models.tickets import Evidence, Ticket

__all__ = [
    "AlertEpisode",
    "AlertHook",
    "AlertNotice",
    "AlertSettings",
    "AlertSubscription",
    "AlertWatch",
    "ApiKey",
    "ApiKeyUse",
    "Appeal",
    "Assignment",
    "Attempt",
    "AuditEntry",
    "BlindCheck",
    "BulkAct",
    "BulkEntry",
    "Decision",
    "Delivery",
    "DeliveryTry",
    "Drainer",
    "Endpoint",
    "EndpointSecret",
    "Evidence",
    "EvidenceReport",
    "FigureChange",
    "Hold",
    "ImportForeseen",
    "ImportPart",
    "ImportRefusal",
    "ImportRun",
    "Item",
    "ItemPass",
    "Job",
    "KnownAnswer",
    "KnownReply",
    "Lane",
    "LaneMinute",
    "LaneRole",
    "LaneSample",
    "LaneTotal",
    "LateAnswer",
    "Message",
    "ModelConnection",
    "Outage",
    "OutageEntry",
    "Policy",
    "Presence",
    "PreservationHold",
    "ReasonCode",
    "ReasonCodeVersion",
    "Recall",
    "RecallEntry",
    "RelayMark",
    "SecondLook",
    "Stage",
    "StageRun",
    "Ticket",
    "WaitingDue",
]
