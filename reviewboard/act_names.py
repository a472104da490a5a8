"""Every act of the audit in words."""

from django.utils.translation import gettext_lazy as _

from reviewboard.shapes import Text

#: What is not here was recorded by a later version.
ACTS: dict[str, Text] = {
    "stage.raised": _("raised the stage"),
    "stage.raise_refused": _("tried to raise the stage"),
    "run.accepted": _("let kept-back decisions go out"),
    "knownanswer.added": _("added a known answer"),
    "knownanswer.changed": _("changed a known answer"),
    "stage.stepped_down": _("stepped down"),
    "lane.held": _("put the lane on hold"),
    "lane.results_refused": _("refused the running results"),
    "lane.leases_unknown": _("refused what ran before the restore"),
    "lane.resumed": _("resumed the lane"),
    "lane.cap_set": _("set the cap"),
    "lane.created": _("created the lane"),
    "lane.changed": _("changed the lane's set-up"),
    "lane.plan_changed": _("changed the plan"),
    "lane.added": _("created the lane"),
    "stage.changed": _("changed the plan"),
    "policy.made": _("made a version of the policy"),
    "policy.forced": _("put a policy into force"),
    "connection.changed": _("changed the connection"),
    "modelconnection.changed": _("changed the connection"),
    "outage.opened": _("opened an outage"),
    "outage.closed": _("closed an outage"),
    "outage.noted": _("wrote into an outage's log"),
    "outage.handed_over": _("handed an outage over"),
    "alert.begun": _("raised an alert"),
    "alert.acknowledged": _("acknowledged an alert"),
    "alert.over": _("ended an alert"),
    "item.decided": _("decided an item"),
    "item.looked_at_again": _("took a second look at a decision"),
    "item.escalated": _("escalated an item to the leads"),
    "item.handed_over": _("handed an item over"),
    "decision.taken_back": _("took a decision back"),
    "decision.corrected_anew": _("began to correct a decision"),
    "decision.appealed": _("entered an appeal against a decision"),
    "bulk.confirmed": _("started a bulk act"),
    "bulk.seconded": _("seconded a bulk act"),
    "bulk.stopped": _("stopped a bulk act"),
    "bulk.ended": _("ended a bulk act"),
    "job.requeued": _("requeued a job"),
    "group.requeued": _("requeued a group"),
    "job.pulled": _("took a job out of the machine's hands"),
    "job.deadline_moved": _("moved a deadline"),
    "evidence.read": _("looked at restricted evidence"),
    "person.added": _("added a person"),
    "person.changed": _("changed a person"),
    "person.locked_out": _("locked out after failed sign-ins"),
    "person.let_in": _("ended a lockout"),
    "person.password_set": _("set a person's password"),
    "demo.seeded": _("staged the demo"),
    "audit.exported": _("exported the audit"),
    "decisions.recalled": _("recalled decisions"),
    "deliveries.replayed": _("replayed deliveries"),
    "apikey.added": _("made an API key"),
    "apikey.changed": _("changed an API key"),
    "apikey.revoked": _("revoked an API key"),
    "endpoint.added": _("added an endpoint"),
    "endpoint.changed": _("changed an endpoint"),
    "endpoint.secret_made": _("made a secret for an endpoint"),
    "item.checked": _("checked a decision blind"),
    "alertsubscription.removed": _("ended a subscription to alerts"),
}


def act_name(code: str) -> Text:
    """An act in words; its code where a later version wrote one that this one does not know."""
    return ACTS.get(code, code)
