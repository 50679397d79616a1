"""Examples and errors of OpenAI's form in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from orchestrator.api import examples
from orchestrator.api.chat.errors import as_error
from orchestrator.api.examples import JOB
from posology import errors
from posology.published.problems import MEDIA_TYPE

#: tag of the operations in the OpenAPI document
TAG = "openai"
MODEL = {
    "id": "posology/router",
    "object": "model",
    "created": 1768469400,
    "owned_by": "posology",
}
REQUEST = {
    "model": "posology",
    "messages": [{"role": "user", "content": "Does aspirin reduce the risk of preeclampsia?"}],
}
COMPLETION: dict[str, Any] = {
    "id": JOB,
    "object": "chat.completion",
    "created": 1768469400,
    "model": "posology",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "No passage was found for this question.",
                "refusal": None,
                "annotations": [],
            },
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "total_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    },
    "posology": {
        "job": JOB,
        "status": "refused",
        "choice": None,
        "model": "offline:extractive",
        "strategy": "direct",
        "index": "index@17",
        "task": None,
        "cost_usd": "0",
        "charged_usd": "0",
        "usage_complete": True,
        "ignored": [],
    },
}
CHUNK: dict[str, Any] = {
    "schema": {
        "type": "object",
        "required": ["data"],
        "properties": {
            "data": {
                "type": "string",
                "description": "A ChatChunk or ChatError as JSON, or at the end `[DONE]`.",
            },
        },
    },
    "example": {
        "data": '{"id":"job_0199a1b2c3d45f6e7a8b9c0d1e2f","object":"chat.completion.chunk","created":1768469400,'
        '"model":"posology","choices":[{"index":0,"delta":{"reasoning_content":"Waiting in the queue.\\n"}}]}',
    },
}


def fails(*kinds: int | errors.PosologyError) -> examples.Responses:
    """Return the error responses of an operation, in OpenAI's form."""
    found: examples.Responses = {}
    for response in examples.fails(*kinds).values():
        for name, example in response["content"][MEDIA_TYPE]["examples"].items():
            status, error = as_error(example["value"])
            content = {
                "schema": {"$ref": "#/components/schemas/ChatError"},
                "examples": {},
            }
            known = found.setdefault(status, {**response, "content": {examples.JSON: content}})
            known["content"][examples.JSON]["examples"][name] = {"value": {"error": error}}
    return found
