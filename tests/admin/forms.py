"""A form of the admin as a browser would send it back."""

from django.test import Client


def form_of(client: Client, url: str) -> dict[str, object]:
    """The values of a change form as a browser would send them back."""
    response = client.get(url)
    assert response.status_code == 200
    shown = response.context["adminform"].form
    values = {name: shown[name].value() for name in shown.fields}
    for formset in response.context["inline_admin_formsets"]:
        inner = formset.formset
        values |= {
            inner.management_form[name].html_name: inner.management_form[name].value()
            for name in inner.management_form.fields
        }
        for form in inner.forms:
            values |= {form[name].html_name: form[name].value() for name in form.fields}
    return {name: "" if value is None else value for name, value in values.items() if value is not False}
