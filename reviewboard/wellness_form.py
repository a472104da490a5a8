"""The form of what one person is shown."""

from django import forms

from reviewboard.models import Person


class ShownForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Person
        fields = ["images_grey", "images_blurred", "text_hidden", "hidden_categories", "break_minutes", "break_severe"]
        widgets = {"text_hidden": forms.RadioSelect}
