"""Where servers keep their data and their sockets."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from reviewboard.embedded import faults, unprivileged
from reviewboard.embedded.processes import way

PRIVATE = 0o700
#: To be passed through, not to be listed.
PASSAGE = 0o711


def sockets_of(var: Path) -> Path:
    """The socket folder that belongs to `var`: always the same, and short, since a socket's path has 107 bytes.

    In /tmp and not in TMPDIR, which differs between a terminal and a service of one person.
    """
    shared = Path("/tmp")  # noqa: S108  `make_private` refuses a folder that a stranger has put there
    parent = shared if os.access(shared, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    digest = hashlib.sha256(os.fsencode(var.resolve())).hexdigest()[:12]
    return parent / f"reviewboard-{os.geteuid()}-{digest}"


def make_private(folder: Path, *, for_nobody: bool = False, above_nobody: bool = False) -> None:
    """Make sure that the folder is there, ours, and closed to others.

    Where root's servers run as nobody, it is theirs (`for_nobody`), or one that leads to theirs (`above_nobody`).
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in _owners():
            raise faults.ServiceFault(f"{folder} belongs to somebody else. Remove it and start again.")
        folder.chmod(PASSAGE if above_nobody and way() == "nobody" else PRIVATE)
        if for_nobody and way() == "nobody":
            os.chown(folder, unprivileged.NOBODY, unprivileged.NOBODY)
    except OSError as error:
        raise faults.of_folder(folder, error) from error


def _owners() -> set[int]:
    """Root's servers may have been started as nobody before (see `way`)."""
    return {os.geteuid(), unprivileged.NOBODY} if os.geteuid() == 0 else {os.geteuid()}
