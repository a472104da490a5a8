"""Addresses of the board and of the lanes. Included by urls.py."""

from django.urls import path

from reviewboard.views import board, lane, lane_acts

urlpatterns = [
    path("", board.board, name="board"),
    path("lanes/<slug:name>/", lane.lane, name="lane"),
    path("lanes/<slug:name>/raise/", lane_acts.raise_stage, name="lane_raise"),
    path("lanes/<slug:name>/hold/", lane_acts.hold_lane, name="lane_hold"),
    path("lanes/<slug:name>/resume/", lane_acts.resume, name="lane_resume"),
    path("lanes/<slug:name>/step-down/", lane_acts.step_down, name="lane_step_down"),
    path("lanes/<slug:name>/cap/", lane_acts.set_cap, name="lane_cap"),
]
