"""The site's addresses as the demo has them, whatever the tests' own settings say."""

from django.urls import include, path

from reviewboard.urls import handler403, handler404, handler500
from reviewboard.urls import urlpatterns as site

__all__ = ["handler403", "handler404", "handler500", "urlpatterns"]

urlpatterns = [*site, path("", include("reviewboard.urls_demo"))]
