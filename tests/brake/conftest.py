from tests.ramp.conftest import lead, person

__all__ = ["lead", "person"]
