"""manage.py model: set how the demo's model behaves."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from queue_core.models import ModelConnection
from reviewboard.demo.conditions import KIND, set_condition
from reviewboard.models import DemoModel


class Command(BaseCommand):
    help = "Sets how the demo's model behaves: up, slow, down or wrong. Only connections of kind demo obey."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("condition", choices=DemoModel.Condition.values)
        parser.add_argument("--connection", help=_("The name of one demo connection. Without it: all of them."))

    def handle(self, *_args: Any, **options: Any) -> None:
        found = self._connections(options["connection"])
        condition = DemoModel.Condition(options["condition"])
        set_condition(ModelConnection.objects.filter(pk__in=[row.pk for row in found]), condition)
        for row in found:
            self.stdout.write(
                _("The model of “%(connection)s” is now: %(condition)s.")
                % {"connection": row.name, "condition": condition.label}
            )

    def _connections(self, name: str | None) -> list[ModelConnection]:
        demo = ModelConnection.objects.filter(kind=KIND).order_by("name")
        if name is not None:
            demo = demo.filter(name=name)
        found = list(demo)
        if not found and name is not None:
            raise CommandError(_("There is no demo connection “%(name)s”.") % {"name": name})
        if not found:
            raise CommandError(_("There is no demo connection here. “manage.py demo” makes one."))
        return found
