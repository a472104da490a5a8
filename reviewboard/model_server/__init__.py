"""A stand-in for review models: it speaks the wires of our connections, and fails on demand. For tests and the demo."""

from reviewboard.model_server.conditions import FAULTS, Condition, Step, read_script
from reviewboard.model_server.running import RunningServer, running
from reviewboard.model_server.server import ModelServer

__all__ = ["FAULTS", "Condition", "ModelServer", "RunningServer", "Step", "read_script", "running"]
