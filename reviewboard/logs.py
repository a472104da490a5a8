"""Logs: a JSON object a line, with the time in UTC, and without what must not be in a log."""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

import structlog
from django.conf import settings

SECRET = re.compile(r"passw|secret|token|authorization|cookie|api_?key|csrf|signature", re.IGNORECASE)
#: Content of tickets. The database has it under its permissions; a log has none.
CONTENT = frozenset({"evidence", "body", "text", "note", "content"})
CREDENTIALS = re.compile(r"(?<=://)[^/\s@:]*:[^/\s@]+(?=@)")
#: API keys, wherever a caller put one. The first characters, which find the key in the admin, stay.
KEYS = re.compile(r"(rbk_[0-9a-f]{8})_[A-Za-z0-9_-]+")
HIDDEN = "[hidden]"


def hide(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if SECRET.search(name) or name in CONTENT:
            event[name] = HIDDEN
        elif isinstance(value, str):
            event[name] = KEYS.sub(rf"\1_{HIDDEN}", CREDENTIALS.sub(HIDDEN, value))
    return event


class NotToldAnyway(logging.Filter):
    """Leaves out what the pool says of each try, in a command by hand beside an embedded database that does not run.

    Such a command ends with a sentence that says so (reviewboard.starting). Servers of one's own may refuse for many
    reasons, and a long-running process goes on: there the line is all that names the cause.
    """

    def filter(self, _record: logging.LogRecord) -> bool:
        return not (settings.ENVIRONMENT.is_embedded and settings.ROLE == "command")


#: In this order: what is known about the line, then what is hidden, the traceback included.
SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure(level: str) -> dict[str, Any]:
    """Django's LOGGING; structlog's own loggers end in the same handler."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    rendering = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        hide,
        structlog.processors.JSONRenderer(),
    ]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": rendering,
                "foreign_pre_chain": SHARED,
            }
        },
        "filters": {"not told anyway": {"()": NotToldAnyway}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # A line a task says nothing; what a task did is logged by the task.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            # A line for each sign-in, with its name; lockouts are in the audit.
            "axes": {"level": "WARNING"},
            # Below this they log requests, with what is asked about whom.
            "httpx2": {"level": "WARNING"},
            "httpcore2": {"level": "WARNING"},
            "openai": {"level": "WARNING"},
            "psycopg.pool": {"filters": ["not told anyway"]},
            "django.server": {"handlers": ["stderr"], "propagate": False},
        },
    }
