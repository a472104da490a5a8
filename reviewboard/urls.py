"""Addresses of the site."""

from importlib.util import find_spec

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from reviewboard.views import errors

handler403 = errors.permission_denied
handler404 = errors.page_not_found
handler500 = errors.server_error

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("reviewboard.urls_account")),
    path("admin/", admin.site.urls),
]
urlpatterns += [
    path("", include(pages)) for pages in ("reviewboard.urls_board", "reviewboard.urls_desk") if find_spec(pages)
]
if settings.REVIEWBOARD_DEMO and find_spec("reviewboard.urls_demo"):
    urlpatterns.append(path("", include("reviewboard.urls_demo")))
