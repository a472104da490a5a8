"""Addresses of a person's own pages. Included by urls.py."""

from django.urls import path

from reviewboard.views import account, password, wellness

urlpatterns = [
    path("sign-in/", account.SignIn.as_view(), name="sign_in"),
    path("sign-out/", account.SignOut.as_view(), name="sign_out"),
    path("signed-in/", account.signed_in, name="signed_in"),
    path("preferences/shown/", wellness.shown, name="preferences_shown"),
    path("preferences/password/", password.OwnPassword.as_view(), name="own_password"),
    path("preferences/", account.preferences, name="preferences"),
    path("favicon.ico", account.icon, name="icon"),
    path("language/", account.set_language, name="set_language"),
]
