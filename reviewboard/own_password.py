"""A person's own password, set in the admin or on a page of theirs."""

from typing import Any

from django.contrib.admin.forms import AdminPasswordChangeForm
from django.db import transaction

from queue_core import audit
from queue_core.clock import DATABASE_CLOCK


class OwnPasswordForm(AdminPasswordChangeForm):
    """On record, as when an administrator sets it: whoever else got hold of a session could have done it."""

    def save(self, commit: bool = True) -> Any:
        with transaction.atomic():
            person = super().save(commit)
            audit.record("person.password_set", now=DATABASE_CLOCK.now(), actor=self.user, subject=self.user)
        return person
