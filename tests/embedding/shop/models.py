from django.db import models


class Review(models.Model):
    """What a customer wrote. Hidden until it is decided."""

    text = models.TextField()
    is_shown = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.text[:20]
