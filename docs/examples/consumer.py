"""A consumer of Reviewboard's webhooks: verifies each message, handles it once, and lets nothing older undo it.

Run it: WEBHOOK_SECRET=whsec_... python docs/examples/consumer.py, with http://127.0.0.1:8080/ as an endpoint of a site
on the same machine that was started with WEBHOOK_ALLOWED_NETWORKS=127.0.0.1/32. It says what became of each message.
It needs the package `standardwebhooks`, and keeps what it knows in one SQLite file.
"""

import os
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

TABLES = """
CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS content (
  source TEXT, ticket TEXT, number INTEGER, verdict TEXT, PRIMARY KEY (source, ticket)
);
"""
LARGEST = 1_000_000


class Consumer:
    """`secrets`: one, or two while it is being changed."""

    def __init__(self, file: str, secrets: list[str]) -> None:
        self._hooks = [Webhook(secret) for secret in secrets]
        # One connection for all threads of the server: they take turns.
        self._turn = threading.Lock()
        self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=10)
        self._database.executescript(TABLES)

    def take(self, body: bytes, headers: dict[str, str]) -> str:
        """What became of one request: handled, repeated, older or ignored. Raises WebhookVerificationError."""
        message = self._verified(body, headers)
        with self._turn, self._database:
            self._database.execute("BEGIN IMMEDIATE")
            # Delivered at least once: the id is the same each time. It is kept in the transaction of what it causes.
            if self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", [message["id"]]).rowcount == 0:
                return "repeated"
            return self._handle(message)

    def _verified(self, body: bytes, headers: dict[str, str]) -> Any:
        for hook in self._hooks[:-1]:
            try:
                return hook.verify(body, headers)
            except WebhookVerificationError:
                continue
        return self._hooks[-1].verify(body, headers)

    def _handle(self, message: dict[str, Any]) -> str:
        verdicts = {"decision": message["data"].get("verdict"), "decision.recalled": None}
        if message["type"] not in verdicts:
            return "ignored"
        # A message that was given up and is replayed later comes after newer ones: its number tells.
        data = (message["data"]["source"], message["data"]["ticket"], message["number"], verdicts[message["type"]])
        changed = self._database.execute(
            "INSERT INTO content VALUES (?, ?, ?, ?) ON CONFLICT (source, ticket) DO UPDATE"
            " SET number = excluded.number, verdict = excluded.verdict WHERE excluded.number > content.number",
            data,
        )
        return "handled" if changed.rowcount else "older"

    def verdicts(self) -> dict[tuple[str, str], str | None]:
        """What each content got; None where the decision was recalled."""
        rows = self._database.execute("SELECT source, ticket, verdict FROM content")
        return {(source, ticket): verdict for source, ticket, verdict in rows}

    def close(self) -> None:
        self._database.close()


def handler_of(consumer: Consumer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            if length > LARGEST:
                self._answer(413)
                return
            try:
                became = consumer.take(self.rfile.read(length), dict(self.headers))
            except WebhookVerificationError:
                self._said("not signed with this secret")
                self._answer(400)
            else:
                self._said(became)
                # Only now: an answer of 2xx says that the message is stored here for good.
                self._answer(204)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.end_headers()

        def _said(self, became: str) -> None:
            sys.stdout.write(f"{self.headers.get('webhook-id', 'a request')}: {became}\n")
            sys.stdout.flush()

        def log_message(self, *_args: Any) -> None:
            pass

    return Handler


if __name__ == "__main__":
    secrets = os.environ.get("WEBHOOK_SECRET", "").split()
    if not secrets:
        sys.exit("Set WEBHOOK_SECRET to the endpoint's secret.")
    ThreadingHTTPServer(("127.0.0.1", 8080), handler_of(Consumer("consumer.sqlite", secrets))).serve_forever()
