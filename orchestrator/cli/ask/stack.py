"""``ask`` and ``search`` through the stack that runs here, which has the index and the encoder open already.

A plain HTTP connection of the standard library: the asynchronous client takes longer to import than the stack to
answer. Whatever the stack does not answer, the command answers itself.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from orchestrator.cli.ending import say
from orchestrator.environment import debug_wanted
from orchestrator.jobs.place import hung
from orchestrator.question.request import DEADLINE, AskRequest, SearchRequest
from orchestrator.settings import Settings
from orchestrator.stack.answers import stack_for
from orchestrator.stack.folder import StackInfo
from posology.errors import StoreUnavailable
from posology.published.jobs import JobOutput
from posology.published.literature import SearchOutput
from posology.published.problems import Problem, urn
from posology.types.jobs import JobState

#: seconds for a sign of life; a stack that hangs accepts connections and says nothing
_ALIVE = 2.0
#: seconds for what the stack does at once: longer than it waits for its Redis
_SOON = 4.0
#: seconds for a search; the first one loads the encoder
_SEARCH = 60.0
#: seconds within which a worker takes the question; all may be busy with a batch
_TAKEN = 3.0
#: seconds that the stack holds one request for the end of a job
_HOLD = 60.0

_Form = TypeVar("_Form", bound=BaseModel)


class Unanswered(Exception):
    """The stack does not answer; the command does."""


class Door:
    """Requests to the API of a stack on this machine.

    Args:
        stack: has an API.
        tenant: name of the tenant.
    """

    def __init__(self, stack: StackInfo, tenant: str) -> None:
        place = urlsplit(stack.api_url or "")
        self._host, self._port = place.hostname or "", place.port
        self._redis = stack.redis_url
        self._headers = {"X-Posology-Tenant": tenant, "Content-Type": "application/json"}

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        seconds: float = _SOON,
    ) -> bytes:
        """Send a request once, and return the body of its successful response.

        Args:
            method: of HTTP.
            path: with the query.
            body: JSON object; ``None``: none.
            key: idempotency key.
            seconds: maximum time of silence.

        Raises:
            StoreUnavailable: the stack's Redis does not answer.
            Unanswered: the stack does not answer in time, or refuses.
        """
        headers = self._headers | ({"Idempotency-Key": key} if key else {})
        connection = HTTPConnection(self._host, self._port, timeout=seconds)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            found = response.read()
        except (OSError, HTTPException) as error:
            raise Unanswered(f"{path}: {type(error).__name__}: {error}") from None
        finally:
            connection.close()
        if response.status not in (200, 202):
            raise self._refusal(path, response.status, found)
        return found

    def _refusal(self, path: str, status: int, body: bytes) -> Exception:
        try:
            problem = Problem.model_validate_json(body)
        except ValidationError:
            return Unanswered(f"{path}: {status}")
        failing = (problem.model_extra or {}).get("failing") or ()
        if problem.type == urn(StoreUnavailable.__name__) or "redis" in failing:
            # the client of Redis is imported for its error alone
            from posology.store.connection import shown

            address = shown(self._redis)
            return StoreUnavailable(hung(address), address=address)
        return Unanswered(f"{path}: {status}: {problem.detail}")


def search_stack(
    settings: Settings, asked: SearchRequest, index: str | None
) -> SearchOutput | None:
    """Search through the stack that runs here; ``None``: the command searches itself.

    Args:
        settings: of the command.
        asked: the request.
        index: folder or address of the index, as given.
    """
    stack = stack_for(settings, index)
    if stack is None:
        return None
    door = Door(stack, settings.tenant)
    try:
        door.request("GET", "/healthz", seconds=_ALIVE)
        body = asked.model_dump(mode="json", exclude_unset=True)
        return _read(SearchOutput, door.request("POST", "/v1/search", body, seconds=_SEARCH))
    # its own search says more of an error, and needs no Redis
    except (Unanswered, StoreUnavailable) as error:
        _explain(error)
        return None


def ask_stack(settings: Settings, asked: AskRequest, index: str | None) -> JobOutput | None:
    """Ask the stack that runs here, and return the job when it has ended; ``None``: the command answers itself.

    The question is sent with a key, so that it is one job. If no worker takes it at once, or the command is
    interrupted, the job is cancelled.

    Args:
        settings: of the command.
        asked: the request.
        index: folder or address of the index, as given.

    Raises:
        StoreUnavailable: the stack's Redis does not answer.
    """
    stack = stack_for(settings, index)
    if stack is None:
        return None
    door = Door(stack, settings.tenant)
    body = asked.model_dump(mode="json", exclude_unset=True) | {"deadline_seconds": DEADLINE}
    key = uuid.uuid4().hex
    try:
        # before anything is submitted
        door.request("GET", "/healthz", seconds=_ALIVE)
        door.request("GET", "/readyz")
        try:
            job = _submitted(door, body, key, _TAKEN)
            if job.state is JobState.QUEUED:
                job = _withdrawn(door, body, key)
                if job.state is not JobState.SUCCEEDED:
                    raise Unanswered("no worker took the question at once")
            while not job.state.over:
                job = _submitted(door, body, key, _HOLD)
        except BaseException:
            # its answer would not be read
            with suppress(Unanswered, StoreUnavailable):
                _withdrawn(door, body, key)
            raise
    except Unanswered as error:
        _explain(error)
        return None
    return job


def _submitted(door: Door, body: Mapping[str, Any], key: str, seconds: float) -> JobOutput:
    """Submit a question, or find its job by the key, and wait for its end."""
    path = f"/v1/jobs?wait={seconds:g}" if seconds else "/v1/jobs"
    return _read(JobOutput, door.request("POST", path, body, key=key, seconds=seconds + _SOON))


def _withdrawn(door: Door, body: Mapping[str, Any], key: str) -> JobOutput:
    """Cancel a job unless it has ended, and return it. A job that was not submitted yet is, and cancelled."""
    job = _submitted(door, body, key, 0)
    if job.state.over:
        return job
    return _read(JobOutput, door.request("DELETE", f"/v1/jobs/{job.id}"))


def _read(form: type[_Form], body: bytes) -> _Form:
    try:
        return form.model_validate_json(body)
    except ValidationError as error:
        raise Unanswered(
            f"its response is not a valid {form.__name__} ({error.error_count()} errors)"
        ) from None


def _explain(error: Exception) -> None:
    if debug_wanted():
        say(f"the running stack was not used: {error}")
