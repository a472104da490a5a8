from tests.connections.conftest import model, model_server

__all__ = ["model", "model_server"]
