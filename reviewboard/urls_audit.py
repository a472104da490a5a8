"""Addresses of the audit. Included by urls.py."""

from django.urls import path

from reviewboard.views import audit

urlpatterns = [
    path("audit/", audit.audit, name="audit"),
    path("audit/export/<slug:kind>/", audit.export, name="audit_export"),
]
