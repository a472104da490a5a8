"""Addresses of imports: files of tickets that people upload. Included by urls.py."""

from django.urls import path

from reviewboard.views import upload_acts, uploads

urlpatterns = [
    path("imports/", uploads.imports, name="imports"),
    path("imports/<int:pk>/", uploads.run, name="import"),
    path("imports/<int:pk>/refused/", uploads.refused, name="import_refused"),
    path("imports/<int:pk>/settle/", upload_acts.settle, name="import_settle"),
    path("imports/<int:pk>/begin/", upload_acts.begin, name="import_begin"),
    path("imports/<int:pk>/change/", upload_acts.change, name="import_change"),
    path("imports/<int:pk>/stop/", upload_acts.stop, name="import_stop"),
    path("imports/<int:pk>/discard/", upload_acts.discard, name="import_discard"),
]
