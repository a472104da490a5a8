"""One process of several that claim at the same instant: `python -m tests.brake.claimers LANE THREADS ROUNDS`.

Each thread waits for an advisory lock that the test holds, and claims once when the test lets go: a barrier over
processes that PostgreSQL keeps.
"""

import os
import sys
import threading

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewboard.settings")


def claim(lane: int, round_: int) -> None:
    from django.db import connection

    from queue_core.batch import claim_next
    from queue_core.clock import DATABASE_CLOCK

    with connection.cursor() as cursor:
        cursor.execute("SET application_name = 'claimer'")
        cursor.execute("SELECT pg_advisory_lock_shared(%s)", [round_])
    claim_next(lane, 1, clock=DATABASE_CLOCK, worker=f"{os.getpid()}")
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")
    connection.close()


def main(lane: int, threads: int, rounds: int) -> None:
    import django

    django.setup()
    for round_ in range(1, rounds + 1):
        claiming = [threading.Thread(target=claim, args=(lane, round_)) for _number in range(threads)]
        for one in claiming:
            one.start()
        for one in claiming:
            one.join()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
