from pathlib import Path

import pytest

from reviewboard.models import Person

HERE = Path(__file__).parent


@pytest.fixture
def gallery(settings):
    """The addresses and templates of the gallery in place of the site's."""
    settings.ROOT_URLCONF = "tests.look.gallery"
    engine = settings.TEMPLATES[0]
    settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], HERE / "templates"]}]


@pytest.fixture
def olga(db):
    return Person.objects.create_user("olga", password="sunflower-4711", timezone="Europe/Stockholm")


@pytest.fixture
def signed_in(client, gallery, olga):
    client.force_login(olga)
    return client
