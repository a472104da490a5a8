"""Django's MAILERS from the one address that the environment gives."""

from typing import Any

from environ import Env

#: The whole of one step with the mail server: nobody waits longer for it.
TIME_LIMIT = 10
#: What an address says, as its backend's options call it.
OPTIONS = {
    "EMAIL_HOST": "host",
    "EMAIL_PORT": "port",
    "EMAIL_HOST_USER": "username",
    "EMAIL_HOST_PASSWORD": "password",
    "EMAIL_USE_TLS": "use_tls",
    "EMAIL_USE_SSL": "use_ssl",
}


def mailers_of(url: str) -> dict[str, Any]:
    """One mailer for smtp://, smtp+tls:// and smtp+ssl:// addresses, or consolemail:// to try it.

    Without an address mail goes nowhere, instead of to whatever listens on this machine's port 25.
    """
    if not url:
        return {"default": {"BACKEND": "django.core.mail.backends.dummy.EmailBackend"}}
    named = Env.email_url_config(url)
    options = {option: named[name] for name, option in OPTIONS.items() if named.get(name) is not None}
    is_smtp = named["EMAIL_BACKEND"].endswith("smtp.EmailBackend")
    return {
        "default": {
            "BACKEND": named["EMAIL_BACKEND"],
            "OPTIONS": {**options, "timeout": TIME_LIMIT} if is_smtp else {},
        }
    }
