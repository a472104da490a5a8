"""Who did what, to what, why: rows written with the act, chained by hash once they are committed."""

from queue_core.audit.origin import acting_from
from queue_core.audit.recording import SYSTEM, record
from queue_core.audit.sealing import Head, head, seal_committed
from queue_core.audit.verifying import Verdict, verify

__all__ = ["SYSTEM", "Head", "Verdict", "acting_from", "head", "record", "seal_committed", "verify"]
