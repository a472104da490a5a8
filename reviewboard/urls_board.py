"""Addresses of the board and of the lanes. Included by urls.py."""

from django.urls import path

from reviewboard.views import alerts, board, lane, lane_acts, lane_policy, outage_acts, outages, policy, recalls

urlpatterns = [
    path("", board.board, name="board"),
    path("lanes/<slug:name>/", lane.lane, name="lane"),
    path("lanes/<slug:name>/raise/", lane_acts.raise_stage, name="lane_raise"),
    path("lanes/<slug:name>/hold/", lane_acts.hold_lane, name="lane_hold"),
    path("lanes/<slug:name>/resume/", lane_acts.resume, name="lane_resume"),
    path("lanes/<slug:name>/step-down/", lane_acts.step_down, name="lane_step_down"),
    path("lanes/<slug:name>/cap/", lane_acts.set_cap, name="lane_cap"),
    path("lanes/<slug:name>/policy/", lane_policy.force_policy, name="lane_policy"),
    path("lanes/<slug:name>/recall/", recalls.recall, name="lane_recall"),
    path("lanes/<slug:name>/accept/", recalls.accept_run, name="lane_accept"),
    path("lanes/<slug:name>/policy/<int:version>/", policy.policy, name="policy"),
    path("lanes/<slug:name>/policy/<int:version>/try/", policy.try_policy, name="policy_try"),
    path("lanes/<slug:name>/outage/close/", outages.close_outage, name="outage_close"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/<int:pk>/acknowledge/", alerts.acknowledge, name="alert_acknowledge"),
    path("outages/", outages.outages, name="outages"),
    path("outages/open/", outage_acts.open_outage, name="outage_open"),
    path("outages/<int:pk>/", outages.outage, name="outage"),
    path("outages/<int:pk>/record.json", outages.outage_json, name="outage_json"),
    path("outages/<int:pk>/record.csv", outages.outage_csv, name="outage_csv"),
    path("outages/<int:pk>/note/", outage_acts.write_note, name="outage_note"),
    path("outages/<int:pk>/hand-over/", outage_acts.hand_over, name="outage_hand_over"),
    path("outages/<int:pk>/close/", outage_acts.close_here, name="outage_close_here"),
]
