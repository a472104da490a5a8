from typing import Any

import pytest
from django.contrib.auth import get_user_model


@pytest.fixture
def olga(db: None) -> Any:
    """A lead, who acts on jobs. Whether she may is the business of `people` and the pages."""
    return get_user_model().objects.create(username="olga")
