from tests.board.conftest import _no_broker, _nothing_kept, cast, leo, rita, vera, xavier

__all__ = ["_no_broker", "_nothing_kept", "cast", "leo", "rita", "vera", "xavier"]
