"""Signing in and out, and what a person chooses: language, time zone, keys."""

import zoneinfo
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reviewboard.models import Person
from reviewboard.safe_next import safe_next
from reviewboard.unsent import carried, forget, unsent_of
from reviewboard.wellness_form import ShownForm

#: Names that mean a place; the rest of the list are aliases and fixed offsets that know no summer time.
PLACES = ("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")


class SignIn(auth_views.LoginView):
    """Who was signed in here before goes on with the form that came too late."""

    template_name = "registration/login.html"
    redirect_authenticated_user = False

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs) | {"unsent": carried(self.request)}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if isinstance(request.user, Person) and "username" not in request.POST:
            # Signed in by another tab, as by single sign-on.
            return self._unsent(request.user) or redirect(self.get_success_url())
        return super().post(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        answer = super().form_valid(form)
        return self._unsent(form.get_user()) or answer

    def _unsent(self, person: Person) -> HttpResponse | None:
        unsent = unsent_of(self.request.POST.get("unsent", ""), person)
        return None if unsent is None else render(self.request, "account/unsent.html", {"unsent": unsent})


class SignOut(auth_views.LogoutView):
    """POST only (Django's rule); the page it shows deletes what was kept in the tab."""

    template_name = "registration/logged_out.html"
    next_page = None

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        answer = super().post(request, *args, **kwargs)
        forget(answer)
        return answer


@require_safe
@login_required
def signed_in(request: HttpRequest) -> HttpResponse:
    """Where the sign-in of a second tab ends: the first one goes on with its text."""
    return render(request, "registration/signed_in.html")


@require_safe
def icon(_request: HttpRequest) -> HttpResponse:
    """For those who ask before they have read a page, or on one that names no icon."""
    return redirect(static("icons/favicon.svg"), permanent=True)


class PreferencesForm(forms.Form):
    language = forms.ChoiceField(label=gettext_lazy("Language"), required=False)
    timezone = forms.ChoiceField(
        label=gettext_lazy("Time zone"), help_text=gettext_lazy("All times on all pages are shown in it.")
    )

    def __init__(self, person: Person, data: QueryDict | None = None) -> None:
        names = ("language", "timezone", "shortcuts")
        super().__init__(data, initial={name: getattr(person, name) for name in names})
        zones = [(name, name.replace("_", " ")) for name in _zones(person.timezone)]
        _offer(self.fields["language"], [("", _("What the browser asks for")), *settings.LANGUAGES])
        _offer(self.fields["timezone"], zones)
        self.fields |= forms.fields_for_model(Person, ["shortcuts"], widgets={"shortcuts": forms.RadioSelect})


def _offer(field: forms.Field, choices: list[tuple[str, str]]) -> None:
    cast("forms.ChoiceField", field).choices = choices


def _zones(chosen: str) -> list[str]:
    places = sorted(name for name in zoneinfo.available_timezones() if name.startswith(PLACES))
    return ["UTC", *([chosen] if chosen not in ("UTC", *places) else []), *places]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def preferences(request: HttpRequest) -> HttpResponse:
    person = cast("Person", request.user)
    form = PreferencesForm(person, request.POST if request.method == "POST" else None)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        context = {"form": form, "shown_form": ShownForm(instance=person)}
        return render(request, "account/preferences.html", context, status=status)
    # Only these three: a right or a name changed meanwhile by an administrator is not written back.
    Person.objects.filter(pk=person.pk).update(**form.cleaned_data)
    with translation.override(form.cleaned_data["language"] or translation.get_language()):
        messages.success(request, _("Your preferences are saved."))
    return redirect("preferences")


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """For this browser by a cookie, and for the person when somebody is signed in."""
    address = safe_next(request, request.POST.get("next", ""))
    response = redirect(address)
    code = request.POST.get("language", "")
    if code not in dict(settings.LANGUAGES):
        return response
    if isinstance(request.user, Person):
        Person.objects.filter(pk=request.user.pk).update(language=code)
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=365 * 24 * 3600,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
    )
    return response
