"""Addresses of single sign-on, where it is configured. Included by urls.py."""

from django.urls import path

from reviewboard.views import sso

urlpatterns = [
    path("sign-in/sso/", sso.begin, name="sso_begin"),
    path("sign-in/sso/back/", sso.arrive, name="sso_arrive"),
]
