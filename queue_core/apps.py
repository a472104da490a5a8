from django.apps import AppConfig
from django.utils.translation import gettext_lazy


class QueueCoreConfig(AppConfig):
    name = "queue_core"
    verbose_name = gettext_lazy("Review queue")
