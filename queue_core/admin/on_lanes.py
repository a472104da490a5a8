"""The choice of the lanes that a row is for."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from queue_core.admin.merging import MergingForm
from queue_core.models import Lane


class OnLanesForm(MergingForm):
    """A form of a row whose `lanes` are ids; an empty list is all lanes, also those that are made later."""

    lanes = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Lanes"),
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None chosen: all lanes, also those that are made later."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lanes = self.fields["lanes"]
        assert isinstance(lanes, forms.TypedMultipleChoiceField)
        lanes.choices = [(lane.pk, str(lane)) for lane in Lane.objects.order_by("name")]
