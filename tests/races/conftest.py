from typing import Any

import pytest
from django.contrib.auth import get_user_model

#: Sessions of their own see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def olga(transactional_db: None) -> Any:
    return get_user_model().objects.create(username="olga")
