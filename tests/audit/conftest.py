"""The cast and the browser of the other pages."""

from tests.board.conftest import _no_broker, _nothing_kept, cast, leo, rita, vera
from tests.desk.conftest import open_page

__all__ = ["_no_broker", "_nothing_kept", "cast", "leo", "open_page", "rita", "vera"]
