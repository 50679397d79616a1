"""Anthropic's batches of messages."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, ClassVar

from posology.errors import ProviderError
from posology.llm.providers.anthropic import AnthropicAdapter, usage_of
from posology.llm.providers.batches.base import (
    SKEW,
    SLOW,
    BadRow,
    Ended,
    SdkBatches,
    part,
    with_usage,
)
from posology.llm.providers.fields import count, counts, section
from posology.llm.providers.replies.faults import Fault
from posology.llm.providers.replies.reader import Reply
from posology.seams.batches import (
    BatchFate,
    BatchFound,
    BatchLimits,
    BatchLine,
    BatchResult,
    BatchStatus,
)
from posology.types import Call, Usage

_PATH = "/v1/messages/batches"
_PAGE = 100
#: whose a line of the results is
_OWNER = re.compile(rb'"custom_id"\s*:\s*"([A-Za-z0-9_-]+)"')
_FATES = {"expired": BatchFate.EXPIRED, "canceled": BatchFate.CANCELLED}


class AnthropicBatches(SdkBatches):
    """A :class:`~posology.seams.batches.BatchEndpoint` over Anthropic's API.

    A batch cannot be labelled: whose it is shows in the ids of its results alone.

    Args:
        adapter: writes the requests, reads the replies, and is closed by this object.
    """

    limits: ClassVar[BatchLimits] = BatchLimits(lines=100_000, bytes=256_000_000)

    def __init__(self, adapter: AnthropicAdapter) -> None:
        super().__init__(adapter)
        self._adapter = adapter

    async def create(self, lines: Mapping[str, BatchLine], *, label: str) -> str:
        """Create a batch of the lines."""
        one = self._checked(lines, label)
        requests = ",".join(
            f'{{"custom_id":"{attempt}","params":{line.body}}}' for attempt, line in lines.items()
        )
        content = f'{{"requests":[{requests}]}}'.encode()
        reply = await self._http.request(
            "post", _PATH, model=one.model, seconds=SLOW, content=content
        )
        return self._id(reply, one.model)

    async def find(
        self,
        label: str,
        *,
        model: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> BatchFound:
        """Look for a batch with results of our ids."""
        del label
        unsure = False
        oldest = since.timestamp() - SKEW
        async for batch in self._listed(f"{_PATH}?limit={_PAGE}", cursor="after_id", model=model):
            created = _time(batch.get("created_at"))
            if created is not None and created.timestamp() < oldest:
                break
            if batch["id"] in known or sum(_counts(batch).values()) != len(ids):
                continue
            if batch.get("processing_status") != "ended":
                unsure = True
                continue
            mine = await self._holds(batch, model, ids)
            if mine:
                return BatchFound(batch=batch["id"], sure=True)
            unsure = unsure or mine is None
        return BatchFound(batch=None, sure=False) if unsure else self._none(since)

    async def status(self, batch: str, *, model: str) -> BatchStatus:
        """Return the state of a batch."""
        body = await self._batch(batch, model)
        counts = _counts(body)
        return BatchStatus(
            ended=body.get("processing_status") == "ended",
            cancelling=body.get("cancel_initiated_at") is not None,
            succeeded=counts["succeeded"],
            failed=counts["errored"] + counts["expired"] + counts["canceled"],
            expires=_time(body.get("expires_at")),
        )

    async def cancel(self, batch: str, *, model: str) -> None:
        """Ask the provider to stop."""
        path = f"{_PATH}/{part(batch)}/cancel"
        await self._cancel(path, batch, model)

    async def discard(self, batch: str, *, model: str) -> None:
        """Delete a batch with its questions and replies."""
        await self._delete(f"{_PATH}/{part(batch)}", model)

    def _request(self, call: Call) -> tuple[str, Mapping[str, Any]]:
        return "/v1/messages", self._adapter.body(call)

    async def _ended(self, batch: str, model: str) -> Ended:
        body = await self._batch(batch, model)
        if body.get("processing_status") != "ended":
            raise self._not_ended(batch, model)
        counts = _counts(body)
        rest = next((fate for name, fate in _FATES.items() if counts[name]), None)
        return Ended(
            files=(f"{_PATH}/{part(batch)}/results",),
            path="/v1/messages",
            succeeded=counts["succeeded"],
            rest=rest,
        )

    def _result(self, row: Mapping[str, Any], model: str, ended: Ended) -> BatchResult:
        del ended
        custom_id, result = row.get("custom_id"), section(row, "result")
        if not isinstance(custom_id, str):
            raise BadRow
        match result.get("type"):
            case "succeeded":
                reply = Reply(body=section(result, "message"), request_id=None, latency=None)
                return self._answered(
                    custom_id, lambda: self._adapter.read(reply, model, tier="batch")
                )
            case "errored":
                return BatchResult(
                    id=custom_id,
                    fate=BatchFate.ERRORED,
                    error=self._failure(section(result, "error"), model),
                )
            case "expired" | "canceled" as fate:
                return self.unanswered(custom_id, _FATES[fate], model)
        raise BadRow

    def _failure(self, body: Mapping[str, Any], model: str) -> ProviderError:
        """Return the error of a line that failed: it is not billed, unless it has usage."""
        told = Fault.of(body).status
        code = 500 if told == 200 else told
        failure = self._http.failure(code, body, model=model, request_id=body.get("request_id"))
        return with_usage(failure, usage_of(body) if counts(body) else Usage())

    async def _holds(
        self, batch: Mapping[str, Any], model: str, ids: Collection[str]
    ) -> bool | None:
        """Return whether a batch holds results of our ids; ``None``: its results cannot be read."""
        path = f"{_PATH}/{part(batch['id'])}/results"
        try:
            async with contextlib.aclosing(self._http.lines(path, model=model)) as lines:
                async for line in lines:
                    # a line that is cut off still tells whose it is
                    if owner := _OWNER.search(line):
                        return owner[1].decode() in ids
        except ProviderError:
            return None
        return None

    async def _batch(self, batch: str, model: str) -> Mapping[str, Any]:
        return (await self._http.request("get", f"{_PATH}/{part(batch)}", model=model)).body


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of lines by state."""
    counts = section(batch, "request_counts")
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    return {name: count(counts.get(name)) or 0 for name in names}


def _time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
