"""What the environment says about this installation, checked before anything starts.

Either both servers are named (a real installation), or neither is (the embedded pair below REVIEWBOARD_VAR). Half of a
configuration is refused: a site that quietly used an empty embedded database beside the real one would look healthy.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from reviewboard.embedded.pair import DATABASE, EmbeddedPair

DATABASE_SCHEMES = frozenset({"postgres", "postgresql", "psql", "pgsql"})
BROKER_SCHEMES = frozenset({"redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps"})
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
#: Characters. Random ones hold some 190 bits at this length.
LEAST_SECRET = 32
SECRET_FILE = "secret_key"  # noqa: S105  a file's name


@dataclass(frozen=True, slots=True)
class Environment:
    var: Path
    is_embedded: bool
    database_url: str
    broker_url: str
    secret_key: str
    hosts: tuple[str, ...]
    has_own_secret: bool

    @property
    def is_local(self) -> bool:
        """Served to this machine only, hence without TLS."""
        return set(self.hosts) <= set(LOOPBACK)

    @property
    def has_amqp(self) -> bool:
        return urlsplit(self.broker_url).scheme.startswith("amqp")


def read(env: Env, base: Path) -> Environment:
    """Starts nothing and writes nothing."""
    var = Path(env.str("REVIEWBOARD_VAR", default="") or base / "var").expanduser().absolute()
    database, broker = env.str("DATABASE_URL", default=""), env.str("CELERY_BROKER_URL", default="")
    secret, hosts = env.str("SECRET_KEY", default=""), tuple(env.list("ALLOWED_HOSTS", default=[]))
    _refuse_half(database, broker)
    if database:
        _refuse_unknown(database, broker)
        _refuse_open(secret, hosts)
        return Environment(var, False, database, broker, secret, hosts, has_own_secret=True)
    pair = EmbeddedPair(var)
    urls = pair.postgres.url(DATABASE), pair.valkey.url()
    return Environment(var, True, *urls, secret or _kept_secret(var), hosts or LOOPBACK, has_own_secret=bool(secret))


def _refuse_half(database: str, broker: str) -> None:
    if bool(database) == bool(broker):
        return
    there, missing = ("DATABASE_URL", "CELERY_BROKER_URL") if database else ("CELERY_BROKER_URL", "DATABASE_URL")
    raise ImproperlyConfigured(
        f"{there} is set and {missing} is not. Set both to use servers of your own, "
        "or neither to use the embedded PostgreSQL and Valkey."
    )


def _refuse_unknown(database: str, broker: str) -> None:
    """Names the scheme and not the address, which may hold a password."""
    scheme = urlsplit(database).scheme
    if scheme not in DATABASE_SCHEMES:
        raise ImproperlyConfigured(
            f'DATABASE_URL begins with "{scheme}:". Only PostgreSQL 15 or newer will do: postgres://user@host/name.'
        )
    scheme = urlsplit(broker).scheme
    if scheme not in BROKER_SCHEMES:
        raise ImproperlyConfigured(
            f'CELERY_BROKER_URL begins with "{scheme}:". Redis, Valkey (redis://) or RabbitMQ (amqp://) will do.'
        )


def _refuse_open(secret: str, hosts: tuple[str, ...]) -> None:
    missing = [name for name, value in (("SECRET_KEY", secret), ("ALLOWED_HOSTS", hosts)) if not value]
    if missing:
        raise ImproperlyConfigured(
            f"{' and '.join(missing)} must be set when DATABASE_URL and CELERY_BROKER_URL are: "
            "SECRET_KEY to a long random text that all processes share, ALLOWED_HOSTS to the names of this site."
        )
    if len(secret) < LEAST_SECRET:
        raise ImproperlyConfigured(
            f"SECRET_KEY has {len(secret)} characters. It signs sessions: at least {LEAST_SECRET}, and random."
        )


def _kept_secret(var: Path) -> str:
    """The one that the launcher made, else one for this process: a command that signs nothing needs no folder."""
    try:
        kept = (var / SECRET_FILE).read_text().strip()
    except OSError:
        kept = ""
    return kept or secrets.token_urlsafe(48)
