"""The site's own settings, with a staged model and short times, for worker processes of the tests."""

from datetime import timedelta

from reviewboard.settings import *  # noqa: F403

QUEUE_CORE_CONNECTIONS = {"staged": "tests.workers.staged.build"}
QUEUE_CORE_DRAIN_SLICE = timedelta(seconds=2)
