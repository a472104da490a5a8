"""What the OpenAPI document says of bodies and failures, which the operations read and raise by themselves."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI, Swagger
from ninja.openapi.schema import OpenAPISchema
from pydantic import BaseModel

from reviewboard.api.problems import CONTENT_TYPE
from reviewboard.api.schemas import ProblemOut

#: What any call may be answered.
ALWAYS = (400, 401, 403, 429, 500, 503)


def failures(*statuses: int) -> dict[int, Any]:
    """The failures of an operation, beside those that each has."""
    return dict.fromkeys(sorted({*ALWAYS, *statuses}), ProblemOut)


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """A JSON body, read by the operation itself: strictly, and bounded."""
    return _body({"application/json": {"schema": model.model_json_schema()}})


def lines_of(media_types: tuple[str, ...]) -> dict[str, Any]:
    """A body of lines. Whatever it is, each line of it is answered, so that no schema forbids any."""
    example = '{"lane": "posts", "ticket": "post-2748", "revision": "1", "evidence": {"text": "…"}}'
    return _body({name: {"schema": {}, "example": example} for name in media_types})


def _body(content: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": content}}


class DocsPage(Swagger):
    """The description for people, in a page of our own: that of the package has no language, main part or way back."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        """Nobody tries calls out on it, so it carries no CSRF token."""
        settings = {**self.settings, "url": self.get_openapi_url(api, kwargs)}
        return render(request, "api/docs.html", {"swagger_settings": settings, "api": api})


class DescribedApi(NinjaAPI):
    """Says of failures that they are problem documents; ninja would call them plain JSON, as all that it makes."""

    def get_openapi_schema(self, **asked: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**asked)
        for methods in document["paths"].values():
            for operation in methods.values():
                for status, response in operation["responses"].items():
                    if int(status) >= 400 and "application/json" in response.get("content", {}):
                        response["content"] = {CONTENT_TYPE: response["content"]["application/json"]}
        return document
