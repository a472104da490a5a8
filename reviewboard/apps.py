from django.apps import AppConfig


class ReviewboardConfig(AppConfig):
    name = "reviewboard"

    def ready(self) -> None:
        # Whoever wakes a worker, page or command, does so by the app of this project.
        from reviewboard.celery import app

        app.set_default()
