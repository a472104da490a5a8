"""manage.py model_server: the stand-in for review models, as a process of its own."""

import asyncio
import json
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from reviewboard.model_server import FAULTS, Condition, ModelServer, Step, read_script
from reviewboard.model_server.conditions import ConditionFault


class Command(BaseCommand):
    help = (
        "Serves a stand-in for review models: /v1/decisions, /v1/moderations, /v1/systemone and /review. "
        "It fails on demand: by PUT to the control port, or by a script."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8100, help="for the wires; 0 takes a free one (default: 8100)")
        parser.add_argument("--control-port", type=int, default=8101, help="0 takes a free one (default: 8101)")
        parser.add_argument("--fault", choices=list(FAULTS), default="up", metavar="FAULT", help=", ".join(FAULTS))
        parser.add_argument("--latency", type=float, default=0.0, help="seconds that an answer takes")
        parser.add_argument("--share", type=float, default=1.0, help="share of the calls that meet the fault")
        parser.add_argument("--retry-after", default="2", help="what 429 and 503 ask for: seconds or a date")
        parser.add_argument("--script", type=Path, help="a JSON file: a list of conditions with “for” or “calls”")
        parser.add_argument("--repeat", action="store_true", help="play the script again and again")
        parser.add_argument(
            "--api-key", default="", help="a key that callers must show (a made-up one: it is no secret)"
        )

    def handle(self, **options: Any) -> None:
        try:
            fields = {name: options[name] for name in ("fault", "latency", "share", "retry_after")}
            condition = Condition.read(fields)
            script = _script(options["script"])
        except (ConditionFault, OSError, ValueError) as fault:
            raise CommandError(str(fault)) from fault
        server = ModelServer(api_key=options["api_key"], condition=condition)
        try:
            asyncio.run(self._serve(server, script, options))
        except OSError as fault:
            raise CommandError(_("The port cannot be used: %(fault)s") % {"fault": fault}) from fault

    async def _serve(self, server: ModelServer, script: list[Step], options: dict[str, Any]) -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        host = options["host"]
        await server.start(host, options["port"], options["control_port"])
        if script:
            server.play(script, repeat=options["repeat"])
        self.stdout.write(f"The model answers at http://{host}:{server.port}/v1, control is at", ending=" ")
        self.stdout.write(f"http://{host}:{server.control_port}/ (GET, PUT, POST /script).")
        self.stdout.flush()
        await ended.wait()
        await server.close()


def _script(path: Path | None) -> list[Step]:
    return [] if path is None else read_script(json.loads(path.read_text()))
