"""One moment for a whole page: all figures are read in one transaction that sees one state of the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import connection, transaction

from queue_core import prepared

#: A page that needs longer than this for one figure shows the last one instead.
READ_LIMIT = timedelta(seconds=3)

#: Every big read of a page walks an index in its order and stops at a cap. The planner cannot know how soon: it takes a
#: lane's rows for a third of what they are and prefers to scan and sort a table of millions. Compiling is for reports.
SETTINGS = """
SELECT clock_timestamp(), set_config('statement_timeout', %(limit)s, true), set_config('enable_seqscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true)
"""


@contextmanager
def snapshot(*, read_limit: timedelta = READ_LIMIT) -> Iterator[datetime]:
    """A REPEATABLE READ, read-only transaction; gives its *as of* by the database's clock.

    Inside another transaction (a test's) it is a savepoint of that one, whose isolation can no longer be set.
    """
    is_outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if is_outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        limit = f"{int(read_limit.total_seconds() * 1000)}ms"
        [[as_of, *_settings]] = prepared.run(SETTINGS, {"limit": limit}).fetchall()
        yield as_of
