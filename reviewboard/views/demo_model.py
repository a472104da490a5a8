"""How the demo's model behaves, set from the strip. There is no such address outside the demo."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from queue_core.models import ModelConnection
from reviewboard.demo.conditions import KIND, set_condition
from reviewboard.models import DemoModel


@require_POST
@login_required
def demo_model(request: HttpRequest) -> HttpResponse:
    """Set the condition of every demo connection."""
    if not settings.REVIEWBOARD_DEMO:
        raise Http404
    condition = request.POST.get("condition", "")
    if condition in DemoModel.Condition.values:
        set_condition(ModelConnection.objects.filter(kind=KIND), DemoModel.Condition(condition))
        label = DemoModel.Condition(condition).label
        messages.success(request, _("The demo's model is now: %(condition)s.") % {"condition": label})
    return HttpResponseRedirect(_next(request))


def _next(request: HttpRequest) -> str:
    url = request.POST.get("next", "/")
    return url if url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()}) else "/"
