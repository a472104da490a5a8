"""Addresses of bulk acts. Included by urls.py."""

from django.urls import path

from reviewboard.views import bulk, bulk_acts

urlpatterns = [
    path("bulk/", bulk.acts, name="bulk_acts"),
    path("bulk/preview/", bulk_acts.preview, name="bulk_preview"),
    path("bulk/<int:pk>/", bulk.act, name="bulk_act"),
    path("bulk/<int:pk>/entries.csv", bulk.entries_csv, name="bulk_entries"),
    path("bulk/<int:pk>/confirm/", bulk_acts.confirm, name="bulk_confirm"),
    path("bulk/<int:pk>/discard/", bulk_acts.discard, name="bulk_discard"),
    path("bulk/<int:pk>/second/", bulk_acts.second, name="bulk_second"),
    path("bulk/<int:pk>/stop/", bulk_acts.stop, name="bulk_stop"),
]
