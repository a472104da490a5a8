from django.apps import AppConfig
from django.utils.translation import gettext_lazy


class ReviewboardConfig(AppConfig):
    name = "reviewboard"
    verbose_name = gettext_lazy("Accounts")

    def ready(self) -> None:
        # Connects their receivers.
        from reviewboard import lockout, sign_in_record  # noqa: F401

        # Whoever wakes a worker, page or command, does so by the app of this project.
        from reviewboard.celery import app

        app.set_default()
