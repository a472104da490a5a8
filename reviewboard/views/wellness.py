"""What a person chooses to be shown, and when a break is offered. Beside the preferences, as a form of its own."""

from typing import cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from reviewboard.models import Person
from reviewboard.views.account import PreferencesForm
from reviewboard.wellness_form import ShownForm


@require_POST
@login_required
def shown(request: HttpRequest) -> HttpResponse:
    person = cast("Person", request.user)
    form = ShownForm(request.POST, instance=person)
    if not form.is_valid():
        context: dict[str, forms.BaseForm] = {"form": PreferencesForm(person), "shown_form": form}
        return render(request, "account/preferences.html", context, status=422)
    # Only these: a right or a name changed meanwhile by an administrator is not written back.
    Person.objects.filter(pk=person.pk).update(**form.cleaned_data)
    messages.success(request, _("Your preferences are saved."))
    return redirect("preferences")
