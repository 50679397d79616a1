"""The base of providers' batch endpoints: lines of files, and results that are missing."""

from __future__ import annotations

import contextlib
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from posology.errors import (
    MalformedReply,
    ModelNotFound,
    NotProcessed,
    ProviderError,
    ProviderOverloaded,
    ProviderUnreachable,
    RequestRejected,
)
from posology.llm.providers.replies.reader import Reply
from posology.llm.providers.wire import SdkAdapter
from posology.seams.batches import (
    BatchFate,
    BatchFound,
    BatchLimits,
    BatchLine,
    BatchResult,
    BatchStatus,
)
from posology.types import Call, Completion, Usage

#: seconds after a request to create a batch in which the batch may still appear
APPEARS = 300.0
#: seconds by which a provider's clock may differ from ours
SKEW = 300.0
#: seconds that a provider may take to read a whole batch, at least
SLOW = 600.0
#: HTTP status of a resource that was there once
_GONE = 410
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,64}")


class BadRow(ValueError):
    """A line of a results file is not in the provider's format."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """A batch that has ended."""

    #: paths of the files with its results
    files: tuple[str, ...]
    #: path of the API that answered its lines
    path: str
    #: lines that were answered, and billed; ``None``: unknown
    succeeded: int | None
    #: how lines ended that are in no file; ``None``: none may be missing
    rest: BatchFate | None
    #: why the provider refused the whole batch; ``None``: it did not
    error: ProviderError | None = None


class SdkBatches(ABC):
    """The base of :class:`~posology.seams.batches.BatchEndpoint` over a provider's adapter.

    Args:
        adapter: of the same provider, which this object closes.
    """

    limits: ClassVar[BatchLimits]

    def __init__(self, adapter: SdkAdapter) -> None:
        self._http = adapter

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def line(self, call: Call) -> BatchLine:
        """Return a call as a line of a batch, see :class:`~posology.seams.batches.BatchEndpoint`.

        Raises:
            UnknownModel: the model is of another provider.
            RequestRejected: the messages are not valid Unicode.
        """
        path, fields = self._request(call)
        body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        # separators of lines in strings are none in JSON, but readers of files may take them for some
        for separator in "\x85\u2028\u2029":
            body = body.replace(separator, f"\\u{ord(separator):04x}")
        try:
            body.encode()
        except UnicodeEncodeError:
            raise RequestRejected(
                f"the messages for {call.model} are not valid Unicode",
                provider=self._http.provider,
                model=call.model,
                usage=Usage(),
            ) from None
        return BatchLine(model=call.model, path=path, body=body)

    async def results(
        self, batch: str, *, model: str, ids: Collection[str]
    ) -> AsyncIterator[BatchResult]:
        """Read the results of a batch, see :class:`~posology.seams.batches.BatchEndpoint`."""
        try:
            ended = await self._ended(batch, model)
        except MalformedReply as error:
            # the results are still there
            raise self._unread(error, model) from None
        missing, answered, unread = dict.fromkeys(ids), set(), 0
        for file in ended.files:
            async with contextlib.aclosing(self._rows(file, model)) as rows:
                async for row in rows:
                    try:
                        result = self._result(row, model, ended)
                    except BadRow:
                        unread += 1
                        continue
                    if result.fate in (BatchFate.SUCCEEDED, BatchFate.UNREADABLE):
                        answered.add(result.id)
                    if result.id in ids:
                        missing.pop(result.id, None)
                        yield result
        accounted = ended.succeeded is not None and ended.succeeded <= len(answered)
        rest = ended.rest if accounted and not unread else None
        for one in missing:
            if ended.error is not None:
                yield BatchResult(id=one, fate=BatchFate.ERRORED, error=ended.error)
            else:
                yield self.unanswered(one, rest or BatchFate.UNREADABLE, model)

    def unanswered(self, attempt: str, fate: BatchFate, model: str) -> BatchResult:
        """Return the result of a line that has no reply that could be read."""
        if fate is BatchFate.UNREADABLE:
            error: ProviderError = self._http.malformed(
                "the results of its batch lack it", model=model, request_id=None
            )
        else:
            error = NotProcessed(
                f"{self._http.provider}'s batch {fate} before a request for {model} was processed",
                provider=self._http.provider,
                model=model,
                usage=Usage(),
            )
        return BatchResult(id=attempt, fate=fate, error=error)

    @abstractmethod
    async def status(self, batch: str, *, model: str) -> BatchStatus:
        """Return the state of a batch, see :class:`~posology.seams.batches.BatchEndpoint`."""

    @abstractmethod
    def _request(self, call: Call) -> tuple[str, Mapping[str, Any]]:
        """Return the path and the body of a call's request."""

    @abstractmethod
    async def _ended(self, batch: str, model: str) -> Ended:
        """Return what is known of a batch that has ended.

        Raises:
            ProviderError: it has not ended, or cannot be read.
        """

    @abstractmethod
    def _result(self, row: Mapping[str, Any], model: str, ended: Ended) -> BatchResult:
        """Read a line of a results file.

        Raises:
            BadRow: it is not in the provider's format.
        """

    async def _rows(self, path: str, model: str) -> AsyncGenerator[Mapping[str, Any]]:
        """Read a results file; a line that is no JSON object comes as an empty one."""
        try:
            async with contextlib.aclosing(self._http.lines(path, model=model)) as lines:
                async for line in lines:
                    try:
                        row = json.loads(line)
                    except (ValueError, RecursionError):
                        row = None
                    yield row if isinstance(row, dict) else {}
        except ProviderError as error:
            raise self._unread(error, model) from None

    def _unread(self, error: ProviderError, model: str) -> ProviderError:
        """Return the error of results that cannot be read: their lines may have been billed."""
        if isinstance(error, ModelNotFound) or error.status == _GONE:
            return self._http.malformed(
                "the results of its batch no longer exist", model=model, request_id=error.request_id
            )
        if isinstance(error, MalformedReply):
            return ProviderUnreachable(str(error), provider=error.provider, model=model)
        return with_usage(error, None)

    def _not_ended(self, batch: str, model: str) -> ProviderError:
        return ProviderOverloaded(
            f"{self._http.provider}'s batch {batch} has not ended: read its results later",
            provider=self._http.provider,
            model=model,
        )

    def _answered(self, attempt: str, read: Callable[[], Completion]) -> BatchResult:
        """Return the result of a line that was answered."""
        try:
            completion = replace(read(), served="batch")
        except MalformedReply as error:
            return BatchResult(id=attempt, fate=BatchFate.UNREADABLE, error=error)
        except ProviderError as error:
            return BatchResult(id=attempt, fate=BatchFate.ERRORED, error=error)
        return BatchResult(id=attempt, fate=BatchFate.SUCCEEDED, completion=completion)

    async def _cancel(self, path: str, batch: str, model: str) -> None:
        """Ask to cancel; a refusal is no error if the batch has ended."""
        try:
            await self._http.request("post", path, model=model)
        except RequestRejected:
            if not (await self.status(batch, model=model)).ended:
                raise

    async def _delete(self, path: str, model: str) -> None:
        """Delete a resource that may be gone."""
        try:
            await self._http.request("delete", path, model=model)
        except ModelNotFound:
            return

    async def _listed(
        self, path: str, *, cursor: str, model: str
    ) -> AsyncIterator[Mapping[str, Any]]:
        """List things with an id, in the provider's order.

        Args:
            path: with a query.
            cursor: parameter that takes the id after which a page begins.
            model: for messages.
        """
        after = ""
        while True:
            page = await self._http.request("get", path + after, model=model)
            data = page.body.get("data")
            if not isinstance(data, list):
                raise self._http.unusable(page, "it has no list", model=model)
            items = [item for item in data if isinstance(item, dict) and item.get("id")]
            for item in items:
                yield item
            if not (page.body.get("has_more") and items):
                return
            after = f"&{cursor}={part(items[-1]['id'])}"

    def _id(self, reply: Reply, model: str) -> str:
        """Return the id of what was created."""
        found = reply.body.get("id")
        if not isinstance(found, str) or not found:
            raise self._http.unusable(reply, "it has no id", model=model)
        return found

    def _none(self, since: datetime) -> BatchFound:
        """Return that no batch was found, which is final after a while."""
        return BatchFound(batch=None, sure=time.time() - since.timestamp() >= APPEARS)

    def _checked(self, lines: Mapping[str, BatchLine], label: str) -> BatchLine:
        """Return one of the lines of a batch.

        Raises:
            ValueError: the lines do not make one batch.
        """
        if not _LABEL.fullmatch(label):
            raise ValueError(f"a label is 1 to 64 characters of A-Za-z0-9_- (got {label!r})")
        kinds = {(line.model, line.path) for line in lines.values()}
        if len(kinds) != 1:
            raise ValueError(f"a batch is of one model and one path (got {len(kinds)})")
        if len(lines) > self.limits.lines:
            raise ValueError(f"a batch has at most {self.limits.lines} lines (got {len(lines)})")
        return next(iter(lines.values()))


def with_usage(error: ProviderError, usage: Usage | None) -> ProviderError:
    """Return an error that says something else about billing."""
    return type(error)(
        str(error),
        provider=error.provider,
        model=error.model,
        status=error.status,
        request_id=error.request_id,
        retry_after=error.retry_after,
        usage=usage,
    )


def part(name: object) -> str:
    """Return a provider's id as one part of a path."""
    return quote(str(name), safe="")
