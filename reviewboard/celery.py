"""The Celery app. Its settings are Django's that begin with CELERY_."""

import os

from celery import Celery

from reviewboard.starting import or_say_why

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "reviewboard.settings")

app = Celery("reviewboard")
with or_say_why():
    app.config_from_object("django.conf:settings", namespace="CELERY", force=True)
app.autodiscover_tasks()
