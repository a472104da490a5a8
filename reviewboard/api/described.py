"""What the OpenAPI document says of bodies and failures, which the operations read and raise by themselves."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation
from pydantic import BaseModel

from reviewboard.api.keys import Key
from reviewboard.api.problems import CONTENT_TYPE
from reviewboard.api.reference import operations, prose, shapes
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


class DocsPage(DocsBase):
    """The description for people: a page of ours, to be read without a script and by ear."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        document = api.get_openapi_schema(path_params=kwargs)
        return render(
            request,
            "api/reference.html",
            {
                "title": document["info"]["title"],
                "says": prose(document["info"]["description"]),
                "operations": operations(document),
                "shapes": shapes(document),
                "machines": self.get_openapi_url(api, kwargs),
            },
        )


class DescribedSchema(OpenAPISchema):
    """Says of each call which scope its key needs, as OpenAPI 3.1 lets a role be named."""

    def operation_security(self, operation: Operation) -> Any:
        asked: list[dict[str, Any]] = super().operation_security(operation) or []
        for one, auth in zip(asked, operation.auth_callbacks, strict=True):
            if isinstance(auth, Key):
                one[type(auth).__name__] = [auth.scope.value]
        return asked


class DescribedApi(NinjaAPI):
    """Says of failures that they are problem documents; ninja would call them plain JSON, as all that it makes."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        prefix = self.get_root_path(path_params or {}) if path_prefix is None else path_prefix
        document = DescribedSchema(self, prefix)
        for methods in document["paths"].values():
            for operation in methods.values():
                for status, response in operation["responses"].items():
                    if int(status) >= 400 and "application/json" in response.get("content", {}):
                        response["content"] = {CONTENT_TYPE: response["content"]["application/json"]}
        return document
