"""What a project needs for the queue: the app, Django's contenttypes and auth, PostgreSQL, and a broker for workers."""

import os

import environ

SECRET_KEY = "of the test"
USE_TZ = True
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "queue_core",
    "shop.apps.ShopConfig",
]
DATABASES = {"default": environ.Env.db_url_config(os.environ["DATABASE_URL"])}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CELERY_BROKER_URL = "memory://"
CELERY_TASK_IGNORE_RESULT = True
