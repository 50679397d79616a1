"""The OpenAPI document of the service."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from orchestrator.api.chat import examples as chat
from orchestrator.api.chat.request import ChatRequest
from orchestrator.api.examples import JSON, fails
from orchestrator.ingest.live.request import FetchRequest
from orchestrator.question.request import JobRequest, SearchRequest
from orchestrator.question.sent import FeedbackRequest, QuoteRequest
from orchestrator.settings import Auth
from orchestrator.tables.served.request import TableRequest
from orchestrator.watches.request import WatchRequest
from orchestrator.webhooks.request import WebhookRequest
from posology import errors
from posology.budget.tenants.store import refused
from posology.errors import PosologyError
from posology.published.chat import ChatChunk, ChatError
from posology.published.jobs import JobEvent
from posology.published.problems import MEDIA_TYPE, Problem
from posology.published.webhooks.messages import WebhookMessage


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; it is generated once."""
    if app.openapi_schema is None:
        made = FastAPI.openapi(app)
        _, extra = models_json_schema(
            [
                (JobRequest, "validation"),
                (SearchRequest, "validation"),
                (QuoteRequest, "validation"),
                (FeedbackRequest, "validation"),
                (FetchRequest, "validation"),
                (WatchRequest, "validation"),
                (WebhookRequest, "validation"),
                (TableRequest, "validation"),
                (ChatRequest, "validation"),
                (Problem, "serialization"),
                (JobEvent, "serialization"),
                (WebhookMessage, "serialization"),
                (ChatChunk, "serialization"),
                (ChatError, "serialization"),
            ],
            ref_template="#/components/schemas/{model}",
        )
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for name, schema in extra["$defs"].items():
            schemas.setdefault(name, schema)
        # FastAPI's own error format, which is never sent
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        for path in made["paths"].values():
            for operation in path.values():
                if operation["tags"] == [chat.TAG]:
                    # FastAPI's own: an invalid field is 400 here
                    operation["responses"].pop("422", None)
                _secure(operation, optional=app.state.context.settings.auth is not Auth.KEYS)
                for response in operation["responses"].values():
                    content = response.get("content", {}).get(JSON, {})
                    if "example" in content:
                        content["example"] = json.loads(content["example"])
        app.openapi_schema = made
    return app.openapi_schema


def _secure(operation: dict[str, Any], *, optional: bool) -> None:
    """Add the responses for an invalid key to an operation that takes one."""
    if "security" not in operation:
        return
    if optional:
        operation["security"].append({})
    refusals: list[int | PosologyError] = [refused()]
    if operation["tags"] != ["operations"]:
        refusals += [403, errors.TenantDisabled("the tenant acme is disabled", tenant="acme")]
    openai = operation["tags"] == [chat.TAG]
    possible = (chat.fails if openai else fails)(*refusals)
    found = {status: shown for status, shown in possible.items() if status in (401, 403)}
    for status, shown in found.items():
        known = operation["responses"].setdefault(str(status), shown)
        if known is not shown:
            media = JSON if openai else MEDIA_TYPE
            content = known["content"][media]
            content["examples"] = shown["content"][media]["examples"] | content["examples"]
