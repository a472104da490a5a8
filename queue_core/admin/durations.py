"""Lengths of time in forms: from none to a year and a day, so that whatever is added to a date is one."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _

LONGEST = timedelta(days=366)


def refuse_boundless(form: "forms.BaseModelForm[Any]") -> None:
    """Add an error to each field of a cleaned form whose length of time is below 0 or above LONGEST."""
    # An error takes its field out of what is cleaned.
    for name, value in list(form.cleaned_data.items()):
        if isinstance(value, timedelta) and not timedelta(0) <= value <= LONGEST:
            form.add_error(name, _("A length of time is from 0 to %(days)d days here.") % {"days": LONGEST.days})
