"""The two servers of one `var` folder, and whether they are to outlive the site."""

from collections.abc import Callable
from pathlib import Path

from reviewboard.embedded import faults
from reviewboard.embedded.folders import make_private, sockets_of
from reviewboard.embedded.postgres import EmbeddedPostgres
from reviewboard.embedded.valkey import EmbeddedValkey

DATABASE = "reviewboard"


class EmbeddedPair:
    def __init__(self, var: Path) -> None:
        self.var = var
        self.postgres = EmbeddedPostgres(var / "postgres", sockets_of(var))
        self.valkey = EmbeddedValkey(var / "valkey", sockets_of(var))
        self._kept = var / "services-kept"

    @property
    def servers(self) -> tuple[EmbeddedPostgres, EmbeddedValkey]:
        return self.postgres, self.valkey

    def start(self, said: Callable[[str], None]) -> None:
        """`said` hears each server's name once it answers."""
        make_private(self.var)
        self.postgres.start()
        self.postgres.create_database(DATABASE)
        said(self.postgres.name)
        self.valkey.start()
        said(self.valkey.name)

    def stop(self) -> None:
        """The broker first: its clients are gone by now, and PostgreSQL's shutdown takes the longest."""
        for server in reversed(self.servers):
            if server.data.parent.is_dir():
                server.stop()

    @property
    def is_kept(self) -> bool:
        """Started by `services start`, hence ended only by `services stop`."""
        return self._kept.exists()

    def keep(self, *, is_kept: bool) -> None:
        try:
            if is_kept:
                self._kept.touch()
            else:
                self._kept.unlink(missing_ok=True)
        except OSError as error:
            raise faults.of_folder(self.var, error) from error
