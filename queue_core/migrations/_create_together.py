from django.db.migrations.operations.base import Operation


class CreateTogether(Operation):
    """Makes many tables as one step, in any order, also where they name each other in a circle.

    Django draws its picture of all models anew after each operation, which is nearly all of what a migration takes:
    here it does so once. It adds foreign keys when all of a migration's tables are made, so none has to be first.
    """

    def __init__(self, models):
        self.models = models

    def deconstruct(self):
        return self.__class__.__name__, [self.models], {}

    def state_forwards(self, app_label, state):
        state.__dict__.pop("apps", None)  # drawn again when it is asked for
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self):
        return f"Create {len(self.models)} models"
