"""A site with single sign-on: the same process, set up as settings.py sets it up where the environment names one."""

import pytest
from django.apps import apps
from django.conf import settings as configured
from django.db import connection
from django.test import override_settings

from reviewboard.sso import setup

if not setup.has_packages():
    collect_ignore = ["test_signing_on.py"]


@pytest.fixture
def provider():
    from tests.sso.provider import served

    with served() as provider:
        yield provider


@pytest.fixture
def site(provider, db):
    """Turned on for one test, its tables made in the test's own transaction."""
    from tests.sso.provider import CLIENT, SECRET

    sign_on = setup.SignOn(provider.issuer, CLIENT, SECRET, "Corp")
    given = {
        "SIGN_ON": sign_on,
        "MIDDLEWARE": setup.middleware_with(configured.MIDDLEWARE),
        "ROOT_URLCONF": "tests.sso.urls",
    }
    installed = [*configured.INSTALLED_APPS, *setup.APPS]
    # One after the other: the packages look at the middleware when they are installed.
    with override_settings(**given, **setup.settings_of(sign_on)), override_settings(INSTALLED_APPS=installed):
        _make_tables()
        yield sign_on


def _make_tables():
    """As the packages' migrations leave them. Playing these takes seconds, for each test."""
    with connection.schema_editor() as editor:
        for label in ("account", "socialaccount"):
            for model in apps.get_app_config(label).get_models():
                editor.create_model(model)
