from django.apps import AppConfig, apps
from django.contrib import admin


class SignOnConfig(AppConfig):
    name = "reviewboard.sso"
    label = "sso"

    def ready(self) -> None:
        """The packages' admin would store a provider's secret, and link accounts past the audit."""
        for label in ("account", "socialaccount"):
            for model in apps.get_app_config(label).get_models():
                if admin.site.is_registered(model):
                    admin.site.unregister(model)
