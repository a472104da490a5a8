"""That what a row points at is there. Foreign keys hold this, except where somebody switched them off."""

from django.db import connection, models
from django.utils.translation import gettext_lazy as _

from queue_core.ledger.rules import Rule, in_sql
from queue_core.models import (
    AlertEpisode,
    AlertNotice,
    ApiKey,
    Appeal,
    Assignment,
    Attempt,
    AuditEntry,
    BlindCheck,
    BulkAct,
    BulkEntry,
    Decision,
    Delivery,
    DeliveryTry,
    Endpoint,
    Evidence,
    EvidenceReport,
    Hold,
    ImportRefusal,
    ImportRun,
    Item,
    ItemPass,
    Job,
    KnownAnswer,
    KnownReply,
    Lane,
    LaneRole,
    LateAnswer,
    Message,
    Outage,
    OutageEntry,
    Policy,
    PreservationHold,
    ReasonCodeVersion,
    Recall,
    RecallEntry,
    SecondLook,
    StageRun,
    Ticket,
)

LINKED: tuple[type[models.Model], ...] = (
    Lane, LaneRole, Policy, ReasonCodeVersion, StageRun, Hold, Outage, OutageEntry, KnownAnswer, KnownReply, ApiKey,
    Ticket, Evidence, PreservationHold, EvidenceReport, Job, Attempt, LateAnswer, Decision, Message, Endpoint, Delivery,
    DeliveryTry, Item, Assignment, ItemPass, SecondLook, BlindCheck, Appeal, Recall, RecallEntry, BulkAct, BulkEntry,
    ImportRun, ImportRefusal, AlertEpisode, AlertNotice, AuditEntry,
)  # fmt: skip


def rules() -> tuple[Rule, ...]:
    says = _("points at a row that is not there")
    return tuple(Rule(f"{one._meta.model_name}_link", one, says, in_sql(_statement(one))) for one in LINKED)


def _statement(model: type[models.Model]) -> str:
    tests = [_test(field) for field in model._meta.concrete_fields if isinstance(field, models.ForeignKey)]
    return f"SELECT x.id FROM {_quoted(model)} x WHERE x.id = ANY(%(ids)s::bigint[]) AND ({' OR '.join(tests)})"  # noqa: S608


def _test(field: "models.ForeignKey[models.Model, models.Model]") -> str:
    column, target = _name(field.column), _name(field.target_field.column)
    there = f"SELECT FROM {_quoted(field.related_model)} y WHERE y.{target} = x.{column}"
    return f"(x.{column} IS NOT NULL AND NOT EXISTS ({there}))"


def _quoted(model: type[models.Model]) -> str:
    return _name(model._meta.db_table)


def _name(column: str | None) -> str:
    return connection.ops.quote_name(str(column))
