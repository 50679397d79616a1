"""Chat completions and models over HTTP, as OpenAI's clients ask for them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from sse_starlette import EventSourceResponse

from orchestrator.api import examples
from orchestrator.api.bodies import read_json
from orchestrator.api.chat import models
from orchestrator.api.chat.answer import message, outcome_of, usage
from orchestrator.api.chat.errors import OpenAIRoute, result_of
from orchestrator.api.chat.examples import CHUNK, COMPLETION, MODEL, REQUEST, TAG, fails
from orchestrator.api.chat.replies import task_completion
from orchestrator.api.chat.request import ChatRequest
from orchestrator.api.chat.stream import Stream, whole
from orchestrator.api.chat.tasks import Asked, task_of
from orchestrator.api.context import Context, Posology, Tenant
from orchestrator.api.examples import JOB, shows
from orchestrator.api.routes.jobs import LOCATION, REFUSED, Key, answered, job_after, place
from orchestrator.logs.events import note
from posology import errors
from posology.published.chat import (
    ChatChoice,
    ChatCompletion,
    ChatModel,
    ChatModels,
)
from posology.published.jobs import JobOutput
from posology.store import keys

router = APIRouter(prefix="/v1", tags=[TAG], route_class=OpenAIRoute)


async def _until_sent() -> AsyncIterator[AsyncExitStack]:
    """Yield a stack that is left when the response has been sent, however it ends."""
    async with AsyncExitStack() as stack:
        yield stack


@router.post(
    "/chat/completions",
    operation_id="createChatCompletion",
    summary="Ask a question as a chat",
    response_model=ChatCompletion,
    responses={
        200: {
            **shows("The answer or refusal.", COMPLETION, headers=LOCATION),
            "content": {
                **shows("", COMPLETION)["content"],
                "text/event-stream": CHUNK,
            },
        },
        **fails(
            *REFUSED,
            429,
            errors.JobCancelled(f"job {JOB} was cancelled", job=JOB),
            errors.ProviderUnreachable(
                "the provider cannot be reached: try again", provider="openai", model="gpt-6-luna"
            ),
            errors.JobExpired(f"job {JOB} did not end within 590 s", seconds=590.0),
        ),
    },
    openapi_extra=examples.takes(ChatRequest, REQUEST),
)
async def complete(
    request: Request,
    api: Posology,
    tenant: Tenant,
    until_sent: Annotated[AsyncExitStack, Depends(_until_sent)],
    *,
    key: Key = None,
) -> Response:
    """Submit the last message of the user as a job, and return its answer with verified quotes and linked sources.

    It is a job like any other, with the tenant's limits, and remains if the client disconnects. With `stream`, the stages
    come as `reasoning_content`, then the whole answer at once, when its quotes have been verified.

    Requests that chat interfaces make on their own, for titles, tags or follow-ups, and tests of the connection are no
    questions: they are answered at once and cost nothing.
    """
    asked = await read_json(request, ChatRequest, limit=api.limits.job_bytes)
    if (task := task_of(asked)) is not None:
        return _task_answered(api, tenant, asked, task)
    seconds = api.limits.completion
    wanted = asked.to_job(api.settings, deadline=max(seconds, 1.0))
    await until_sent.enter_async_context(api.waits.of(tenant))
    submitted = await api.jobs().submit(wanted, tenant=tenant, key=key)
    if asked.stream:
        return await _streamed(api, tenant, asked, submitted.job)
    job = await job_after(request, api.jobs(), submitted.job, tenant=tenant, seconds=seconds)
    return answered(_completion(job, asked), 200, {"Location": place(job.id)})


@router.get(
    "/models",
    operation_id="listModels",
    summary="List models",
    response_model=ChatModels,
    responses={
        200: shows("The models.", {"object": "list", "data": [MODEL]}),
        **fails(),
    },
)
async def list_models(tenant: Tenant) -> Response:  # noqa: ARG001 - refuses requests without a key
    """List the ways to answer a question: the service's own policy, all policies and all strategies."""
    return answered(models.models())


@router.get(
    "/models/{model:path}",
    operation_id="getModel",
    summary="Get a model",
    response_model=ChatModel,
    responses={
        200: shows("The model.", MODEL),
        **fails(errors.UnknownModel("there is no model 'x'", model="x")),
    },
)
async def get_model(
    tenant: Tenant,  # noqa: ARG001
    model: Annotated[
        str,
        Path(
            max_length=300,
            description="Name of the model, which may contain a slash.",
            examples=["posology/router"],
        ),
    ],
) -> Response:
    """Return a model by its name."""
    return answered(models.find(model))


def _task_answered(api: Context, tenant: str, request: ChatRequest, asked: Asked) -> Response:
    """Answer what is no question.

    Raises:
        RequestProblem: 404, if the model is unknown: a test of the connection must fail then.
    """
    models.choice_of(request.model)
    note("chat task answered", tenant=tenant, task=asked.task)
    out = task_completion(request, asked, name=keys.new_id("chat"), created=int(time.time()))
    if not request.stream:
        return answered(out, 200)
    counted = bool(request.stream_options and request.stream_options.include_usage)
    return EventSourceResponse(
        whole(out, counted=counted),
        ping=int(api.limits.keep_alive),
        headers={"Cache-Control": "no-store"},
    )


async def _streamed(api: Context, tenant: str, asked: ChatRequest, job: str) -> Response:
    stream = Stream(
        store=api.jobs(),
        tenant=tenant,
        job=await api.jobs().get(job, tenant=tenant),
        model=asked.model,
        ignored=asked.ignored(),
        completed=asked.completed,
        counted=bool(asked.stream_options and asked.stream_options.include_usage),
        seconds=api.limits.completion,
    )
    return EventSourceResponse(
        stream.events(),
        ping=int(api.limits.keep_alive),
        headers={"Cache-Control": "no-store", "Location": place(job)},
    )


def _completion(job: JobOutput, asked: ChatRequest) -> ChatCompletion:
    out = result_of(job)
    return ChatCompletion(
        id=job.id,
        created=int(job.created.timestamp()),
        model=asked.model,
        choices=(ChatChoice(message=message(out, completed=asked.completed)),),
        usage=usage(job.spending.usage),
        posology=outcome_of(job, out, asked.ignored(), asked.completed),
    )
