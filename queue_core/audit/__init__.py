"""Who did what, to what, why: rows written with the act, chained by hash once they are committed."""

from queue_core.audit.origin import acting_from
from queue_core.audit.recording import SYSTEM, Act, record, record_many
from queue_core.audit.sealing import Head, head, seal_committed
from queue_core.audit.verifying import Verdict, verify

__all__ = [
    "SYSTEM",
    "Act",
    "Head",
    "Verdict",
    "acting_from",
    "head",
    "record",
    "record_many",
    "seal_committed",
    "verify",
]
