"""Addresses of the site."""

from django.conf import settings
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from reviewboard.views import errors, metrics

handler403 = errors.permission_denied
handler404 = errors.page_not_found
handler500 = errors.server_error

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("reviewboard.urls_api")),
    path("", include("reviewboard.urls_account")),
    path("", include("reviewboard.urls_board")),
    path("", include("reviewboard.urls_desk")),
    path("", include("reviewboard.urls_bulk")),
    path("", include("reviewboard.urls_deliveries")),
    path("", include("reviewboard.urls_audit")),
    path("", include("reviewboard.urls_keeping")),
    path("", include("reviewboard.urls_uploads")),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
]
if settings.SIGN_ON:
    urlpatterns.append(path("", include("reviewboard.urls_sso")))
if settings.REVIEWBOARD_DEMO:
    urlpatterns.append(path("", include("reviewboard.urls_demo")))
