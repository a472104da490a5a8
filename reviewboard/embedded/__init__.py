"""PostgreSQL and Valkey out of wheels, for a machine that has neither.

Nothing here reads the settings: tests and the launcher start servers before there are any.
"""

from reviewboard.embedded.faults import ServiceFault
from reviewboard.embedded.postgres import EmbeddedPostgres
from reviewboard.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedPostgres", "EmbeddedValkey", "ServiceFault"]
