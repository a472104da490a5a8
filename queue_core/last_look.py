"""What the last look at a model said, for as long as it tells of the present."""

from datetime import datetime, timedelta

from queue_core.models import ModelConnection

LOOK_LASTS = timedelta(minutes=1)


def model_answers(model: ModelConnection, now: datetime) -> bool | None:
    """Whether the model answered its last health check; None if nobody has looked lately."""
    looked_at = model.health_checked_at
    return None if looked_at is None or now - looked_at > LOOK_LASTS else model.health_is_good
