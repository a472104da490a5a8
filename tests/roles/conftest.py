from tests.ramp.conftest import person

__all__ = ["person"]
