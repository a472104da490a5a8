"""A Django project that has nothing to do with this site, and embeds `queue_core`."""

from shop.celery import app

__all__ = ["app"]
