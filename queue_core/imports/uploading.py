"""A file comes in: read once, bounded, turned into UTF-8 and kept as rows, where every worker finds it."""

import hashlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from queue_core import audit
from queue_core.clock import Clock
from queue_core.errors import ConfigurationFault, InvalidRequest
from queue_core.imports.acts import RIGHT
from queue_core.models import ImportPart, ImportRun
from queue_core.rights import require_somewhere
from queue_core.states import ImportState
from queue_core.ticket_encoding import as_utf8
from queue_core.ticket_formats import FileKind

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser

MIB = 1024 * 1024
#: Of a file as it is kept. Larger ones go in by `import_tickets`, or in parts.
MOST_BYTES = 200 * MIB
#: Files that are kept at once, of one person.
MOST_OPEN = 5
PART = 256 * 1024


@dataclass(frozen=True, slots=True)
class NewFile:
    """What is known of a file before it is read. `kind` None: told by its name, else by its first character."""

    name: str
    source: str
    encoding: str | None = None
    kind: FileKind | None = None


def upload(stream: BinaryIO, new: NewFile, *, person: "AbstractUser", clock: Clock) -> ImportRun:
    """Keep a file. Raises NotPermitted, and InvalidRequest for one that is empty, too large or in no such encoding."""
    require_somewhere(person, RIGHT)
    _check_open(person)
    try:
        text, encoding = as_utf8(stream, new.encoding)
    except ConfigurationFault as fault:
        raise InvalidRequest(str(fault), field="encoding") from fault
    with transaction.atomic():
        now = clock.now()
        head = text.read(PART)
        run = ImportRun(
            by_id=person.pk, name=_shown_name(new.name), kind=new.kind or _kind_of(new.name, head), encoding=encoding,
            size=0, digest="", source=new.source, state=ImportState.UPLOADED, uploaded_at=now, asked_at=now,
        )  # fmt: skip
        run.save(force_insert=True)
        run.size, run.digest = _keep(run, head, text)
        run.save(update_fields=["size", "digest"])
        _check_kept(person)
        after = {"file": run.name, "bytes": run.size, "sha256": run.digest, "source": run.source}
        audit.record("import.uploaded", now=now, actor=person, subject=run, after=after)
    return run


def _check_kept(person: "AbstractUser") -> None:
    """Once more, when the file is written: of several that come at once each sees those that were kept before it."""
    get_user_model()._default_manager.select_for_update(no_key=True).get(pk=person.pk)
    _check_open(person, beside=1)


def _check_open(person: "AbstractUser", *, beside: int = 0) -> None:
    kept = ImportRun.objects.filter(by_id=person.pk, ended_at__isnull=True).count() - beside
    if kept >= MOST_OPEN:
        text = ngettext(
            "%(count)d file of yours is kept already. Import or discard it first.",
            "%(count)d files of yours are kept already. Import or discard one of them first.",
            kept,
        )
        raise InvalidRequest(text % {"count": kept}, field="file")


def _shown_name(name: str) -> str:
    """The file's own name, without the folders that some browsers send and what no text holds."""
    last = PurePath(name.replace("\\", "/")).name.replace("\x00", "")
    return last.encode(errors="replace").decode()[:200] or "?"


def _kind_of(name: str, head: bytes) -> FileKind:
    suffix = PurePath(name).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return FileKind.CSV
    is_object = head.lstrip()[:1] == b"{"
    return FileKind.NDJSON if is_object or suffix in (".ndjson", ".jsonl", ".json") else FileKind.CSV


def _keep(run: ImportRun, piece: bytes, rest: BinaryIO) -> tuple[int, str]:
    size, number, digest = 0, 0, hashlib.sha256()
    while piece:
        size += len(piece)
        if size > MOST_BYTES:
            reason = _("The file is larger than %(most)d MiB. Send it in parts, or by import_tickets.")
            raise InvalidRequest(reason % {"most": MOST_BYTES // MIB}, field="file")
        digest.update(piece)
        ImportPart.objects.bulk_create([ImportPart(run=run, number=number, content=piece)])
        number += 1
        piece = rest.read(PART)
    if not size:
        raise InvalidRequest(_("The file is empty."), field="file")
    return size, digest.hexdigest()
