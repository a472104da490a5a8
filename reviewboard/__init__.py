"""The site: a Django project around queue_core."""
