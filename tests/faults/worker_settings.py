"""The workers' settings for faults: a staged model, and one whose process dies where a test says."""

from tests.workers.worker_settings import *  # noqa: F403

QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build", "deadly": "tests.faults.deadly.build"}
