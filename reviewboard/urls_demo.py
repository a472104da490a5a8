"""Addresses that only the demo has."""

from django.urls import path

from reviewboard.views.demo_model import demo_model
from reviewboard.views.demo_signin import demo_sign_in

urlpatterns = [
    path("demo/model", demo_model, name="demo_model"),
    path("demo/sign-in/<str:token>/", demo_sign_in, name="demo_sign_in"),
]
