"""Addresses of restricted content, and of what is kept or erased. Included by urls.py."""

from django.urls import path

from reviewboard.views import keeping, restricted

urlpatterns = [
    path("desk/<int:pk>/look/", restricted.look, name="item_look"),
    path("desk/<int:pk>/restrict/", restricted.restrict_and_leave, name="item_restrict"),
    path("tickets/<int:pk>/keeping/", keeping.page, name="keeping"),
    path("tickets/<int:pk>/keeping/preserve/", keeping.preserve, name="keeping_preserve"),
    path("tickets/<int:pk>/keeping/holds/<int:hold>/lift/", keeping.lift, name="keeping_lift"),
    path(
        "tickets/<int:pk>/keeping/revisions/<int:evidence>/lift/", keeping.lift_restriction, name="keeping_unrestrict"
    ),
    path("tickets/<int:pk>/keeping/report/", keeping.report, name="keeping_report"),
    path("tickets/<int:pk>/keeping/erase/", keeping.erase, name="keeping_erase"),
]
