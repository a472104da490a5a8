"""Addresses of people's work and of the jobs. Included by urls.py."""

from django.urls import path

from reviewboard.views import desk, desk_numbers, item, item_acts, item_chain, item_passing, job, jobs

urlpatterns = [
    path("desk/", desk.desk, name="desk"),
    path("desk/take-next/", desk.take_next, name="desk_take_next"),
    path("desk/pull/<int:pk>/", desk.pull, name="desk_pull"),
    path("desk/<int:pk>/", item.item, name="item"),
    path("desk/<int:pk>/take/", desk.take, name="desk_take"),
    path("desk/<int:pk>/decide/", item_acts.decide, name="item_decide"),
    path("desk/<int:pk>/requeue/", item_acts.requeue, name="item_requeue"),
    path("desk/<int:pk>/extend/", item_acts.extend, name="item_extend"),
    path("desk/<int:pk>/give-back/", item_acts.give_back, name="item_give_back"),
    path("desk/<int:pk>/hand-over/", item_passing.hand_over, name="item_hand_over"),
    path("desk/<int:pk>/skip/", item_passing.skip, name="item_skip"),
    path("desk/<int:pk>/escalate/", item_passing.escalate, name="item_escalate"),
    path("desk/decisions/<int:pk>/take-back/", item_chain.take_back, name="decision_take_back"),
    path("desk/decisions/<int:pk>/correct/", item_chain.correct, name="decision_correct"),
    path("desk/numbers/", desk_numbers.numbers, name="desk_numbers"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<int:pk>/", job.job, name="job"),
    path("jobs/<int:pk>/appeal/", item_chain.appeal, name="job_appeal"),
    path("jobs/<int:pk>/move-deadline/", job.move_deadline, name="job_move_deadline"),
]
