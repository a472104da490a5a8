"""The `openai` package with nothing hidden in it: no retries, no redirects, no key, no time limit of its own."""

import logging
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import httpx2
from django.utils.translation import gettext as _

from queue_core.connections.network.options import OptionFault
from queue_core.connections.network.sending import BadStatus, BrokenBy, Terms, Unreadable, parsed
from queue_core.connections.network.transport import PLACEHOLDER

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ADDRESS = "https://api.openai.com/v1"


def check_installed() -> None:
    if find_spec("openai") is None:
        raise OptionFault(_("The package “openai” is not installed here."), field="kind")


def load() -> None:
    """Import the package's parts, which it would do at the first call: seconds, in which no other call would go on."""
    for name in ("openai", "openai.resources.decisions", "openai.resources.moderations"):
        import_module(name)
    _quieten()


def client_for(address: str, http_client: httpx2.AsyncClient, terms: Terms) -> "AsyncOpenAI":
    """A client of the package over our own transport, which puts the key in: the package never has it."""
    from openai import AsyncOpenAI

    return AsyncOpenAI(
        base_url=address,
        api_key=PLACEHOLDER,
        # Else it takes these from the environment, and would send them to whatever server is named.
        organization="",
        project="",
        webhook_secret="",
        max_retries=0,
        timeout=terms.timeout,
        http_client=http_client,
    )


def _quieten() -> None:
    """At DEBUG, which one variable of the environment turns on, the package logs requests with the evidence in them."""
    package = logging.getLogger("openai")
    if package.level < logging.WARNING:
        package.setLevel(logging.WARNING)


async def said[T](send: Callable[[], Awaitable[T]]) -> T:
    """What the package returns; its exceptions become ours."""
    import openai

    try:
        return await send()
    except openai.APIStatusError as error:
        raise BadStatus(error.response.content) from error
    except openai.APIResponseValidationError as error:
        raise Unreadable("The answer is not what the API promises.") from error
    except openai.APIConnectionError as error:
        raise BrokenBy(error.__cause__ or error) from error


def plain(raw: Any) -> object:
    """The answer's JSON as it came; Unreadable for what is none.

    Not as the package's types read it: they take a true for a 1.0, and a text for a number.
    """
    content: bytes = raw.http_response.content
    return parsed(content)
