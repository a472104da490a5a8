"""The page where a person sets their own password. Who signs in another way has none here."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.forms import PasswordChangeForm
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse_lazy
from django.utils.translation import gettext as _

from reviewboard.own_password import OwnPasswordForm


class OwnPassword(auth_views.PasswordChangeView):
    """Asks for the present one. All other sessions of the person are over then (Django's session hash)."""

    form_class = OwnPasswordForm
    template_name = "account/password.html"
    success_url = reverse_lazy("preferences")

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not (request.user.is_authenticated and request.user.has_usable_password()):
            raise Http404("This person has no password here.")
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        answer = super().form_valid(form)
        messages.success(self.request, _("Your password is changed. You are signed out everywhere else."))
        return answer

    def form_invalid(self, form: PasswordChangeForm) -> HttpResponse:
        return self.render_to_response(self.get_context_data(form=form), status=422)
