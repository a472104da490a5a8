"""Files of tickets that people upload, and what became of them."""

import hashlib
import json

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from queue_core.models.lanes import Lane
from queue_core.states import ENDED_IMPORTS, ImportState


def digest_of(source: str, external_id: str) -> str:
    """A ticket's name as imports keep it beside what they keep of a line."""
    return hashlib.blake2b(json.dumps([source, external_id]).encode(), digest_size=16).hexdigest()


class ImportRun(models.Model):
    """One uploaded file: tried dry, then imported. Ended once.

    `place` is where in the file the next batch begins, `line` the number of the line there; both move with the batch,
    in its transaction, as do the counts. `held_until` is the time of the worker that has it now.
    """

    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=6)
    encoding = models.CharField(max_length=40)
    size = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    lane = models.ForeignKey(Lane, models.PROTECT, null=True, related_name="+", db_index=False)
    source = models.CharField(max_length=64)
    revision = models.CharField(max_length=64, blank=True)
    delimiter = models.CharField(max_length=1, blank=True)
    mapping = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    header = models.JSONField(null=True)
    state = models.CharField(max_length=9, choices=ImportState)
    uploaded_at = models.DateTimeField()
    asked_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    held_by = models.CharField(max_length=200, blank=True)
    held_until = models.DateTimeField(null=True)
    takes = models.PositiveSmallIntegerField(default=0, db_default=0)
    place = models.BigIntegerField(default=0, db_default=0)
    line = models.BigIntegerField(default=0, db_default=0)
    counts = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    foretold = models.JSONField(null=True)
    fault = models.CharField(max_length=500, blank=True)
    is_emptied = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = _("import of tickets")
        verbose_name_plural = _("imports of tickets")
        default_permissions = ()
        permissions = [("import_tickets", _("Can import files of tickets"))]
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=ENDED_IMPORTS, ended_at__isnull=False)
                | (~Q(state__in=ENDED_IMPORTS) & Q(ended_at__isnull=True)),
                name="import_ended_has_its_time",
            ),
            models.CheckConstraint(condition=Q(place__gte=0, place__lte=models.F("size")), name="import_within_file"),
        ]
        indexes = [
            models.Index(fields=["id"], name="import_open", condition=Q(ended_at__isnull=True)),
            models.Index(fields=["id"], name="import_full", condition=Q(is_emptied=False)),
            models.Index(fields=["by", "-id"], name="import_by"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.uploaded_at:%Y-%m-%d %H:%M:%S}"

    @property
    def is_at_work(self) -> bool:
        return self.state in (ImportState.CHECKING, ImportState.IMPORTING)


class ImportPart(models.Model):
    """A part of an uploaded file, in UTF-8; all but the last of one size. Gone when the run has ended."""

    run = models.ForeignKey(ImportRun, models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        verbose_name = _("part of a file")
        verbose_name_plural = _("parts of files")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["run", "number"], name="import_part_once")]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.number}"


class ImportRefusal(models.Model):
    """A line that did not go in, or would not. `raw` is the line; null: too long, restricted, or erased.

    `ticket` is the digest of the name that it gives its ticket, by which an erasure finds it; null: none can be read.
    """

    run = models.ForeignKey(ImportRun, models.CASCADE, related_name="refusals", db_index=False)
    line = models.BigIntegerField()
    field = models.CharField(max_length=64, blank=True)
    reason = models.TextField()
    outcome = models.CharField(max_length=20)
    raw = models.BinaryField(null=True)
    ticket = models.CharField(max_length=32, null=True)

    class Meta:
        verbose_name = _("refused line")
        verbose_name_plural = _("refused lines")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["run", "line"], name="import_refusal_once_a_line")]
        indexes = [models.Index(fields=["ticket"], name="import_refusal_ticket", condition=Q(raw__isnull=False))]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.line}"


class ImportForeseen(models.Model):
    """What the lines before would have made of one ticket: the memory of a dry run. `name` is a digest."""

    run = models.ForeignKey(ImportRun, models.CASCADE, related_name="foreseen", db_index=False)
    name = models.CharField(max_length=32)
    current = models.CharField(max_length=200)
    revisions = models.JSONField()

    class Meta:
        verbose_name = _("ticket foreseen by a dry run")
        verbose_name_plural = _("tickets foreseen by a dry run")
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="import_foreseen_once")]

    def __str__(self) -> str:
        return f"{self.run_id}/{self.name}"
