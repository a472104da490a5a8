"""What must hold before anything is started, each refusal with what to do."""

import contextlib
import errno
import fcntl
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

from django.db import DEFAULT_DB_ALIAS, Error, connections
from kombu import Connection

from reviewboard.embedded import ServiceFault, faults
from reviewboard.embedded.folders import make_private
from reviewboard.environment import SECRET_FILE, Environment

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
BROKER_LIMIT = 5


@contextlib.contextmanager
def only_launcher(var: Path) -> Iterator[None]:
    """One site in one folder. The lock ends with its holder, so a kill leaves none behind."""
    make_private(var)
    with (var / "launcher.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ServiceFault(
                f"A site already runs from {var} (process {lock.read().strip() or 'unknown'}). "
                "End it with Ctrl-C in its terminal, or set REVIEWBOARD_VAR to another folder and add --port."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def check_port(host: str, port: int) -> None:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trying.bind(address)
    except socket.gaierror as error:
        raise ServiceFault(f'"{host}" is no address of this machine. Try --host 127.0.0.1.') from error
    except OSError as error:
        raise _of_port(host, port, error) from error


def _of_port(host: str, port: int, error: OSError) -> ServiceFault:
    if error.errno == errno.EADDRINUSE:
        return ServiceFault(f"Port {port} is taken. Add --port {port + 1} (or another), or end what uses it.")
    if error.errno == errno.EACCES:
        return ServiceFault(f"You may not open port {port}. Add --port with a number above 1023.")
    return ServiceFault(f"Port {port} on {host} cannot be opened: {error.strerror}.")


def check_host(environment: Environment, host: str) -> None:
    if host not in LOOPBACK and environment.is_local:
        raise ServiceFault(
            f"--host {host} opens the site to other machines, and ALLOWED_HOSTS names only this one. "
            "Set ALLOWED_HOSTS to the names by which it will be called; it will then ask browsers for HTTPS."
        )


def keep_secret(environment: Environment) -> str:
    """The secret that all processes of an embedded site share, made once. One from the environment goes before."""
    if environment.has_own_secret:
        return environment.secret_key
    kept = environment.var / SECRET_FILE
    try:
        if not kept.exists() or not kept.read_text().strip():
            kept.touch(mode=0o600)
            kept.write_text(secrets.token_urlsafe(48))
        return kept.read_text().strip()
    except OSError as error:
        raise faults.of_folder(environment.var, error) from error


def check_database() -> None:
    """With every option of the address but the pool, which hides the cause. No sentence holds a password."""
    asking = connections[DEFAULT_DB_ALIAS].copy()
    asking.settings_dict["OPTIONS"].pop("pool", None)
    try:
        # Refuses servers that are too old for Django, in a sentence of its own.
        asking.ensure_connection()
    except Error as error:
        raise ServiceFault(f"The database of DATABASE_URL cannot be used: {str(error).strip()}") from error
    finally:
        asking.close()


def check_broker(url: str) -> None:
    with Connection(url, connect_timeout=BROKER_LIMIT) as asking:
        try:
            asking.ensure_connection(max_retries=1, timeout=BROKER_LIMIT)
        except Exception as error:
            # Each transport raises its library's own.
            raise ServiceFault(
                f"The broker of CELERY_BROKER_URL ({asking.as_uri()}) does not answer: {error}"
            ) from error
