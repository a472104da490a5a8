"""The project's own Celery app: it finds the queue's tasks where it finds all others."""

from celery import Celery

app = Celery("shop")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
