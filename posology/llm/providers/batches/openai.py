"""OpenAI's batch endpoint: files of requests and of replies."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from posology.errors import ProviderError
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
from posology.llm.providers.openai import OpenAIAdapter, usage_of
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

#: key of our label in a batch's metadata
LABEL = "posology"
#: seconds that files are kept if they are not deleted: the least that Azure takes
KEPT = 14 * 86_400
_PAGE = 100
_FILES = "/files?purpose=batch&order=desc&limit=1000"
_EMBEDDINGS = "/v1/embeddings"
_EXPIRES = {"anchor": "created_at", "seconds": KEPT}
_OVER = {"failed", "completed", "expired", "cancelled"}
_FATES = {"batch_expired": BatchFate.EXPIRED, "batch_cancelled": BatchFate.CANCELLED}
_RESTS = {"expired": BatchFate.EXPIRED, "cancelled": BatchFate.CANCELLED}


class OpenAIBatches(SdkBatches):
    """A :class:`~posology.seams.batches.BatchEndpoint` over OpenAI's API.

    The requests are uploaded as a file, which costs nothing; the batch is created from it, with our label in its
    metadata. Answered and failed lines come in a file each.

    Args:
        adapter: writes the requests, reads the replies, and is closed by this object.
    """

    limits: ClassVar[BatchLimits] = BatchLimits(lines=50_000, bytes=200_000_000)

    def __init__(self, adapter: OpenAIAdapter) -> None:
        super().__init__(adapter)
        self._adapter = adapter

    async def create(self, lines: Mapping[str, BatchLine], *, label: str) -> str:
        """Upload the lines and create a batch of them."""
        line = self._checked(lines, label)
        file = await self._upload(lines, line.model, label)
        try:
            reply = await self._http.request(
                "post",
                "/batches",
                model=line.model,
                body={
                    "completion_window": "24h",
                    "endpoint": line.path,
                    "input_file_id": file,
                    "metadata": {LABEL: label},
                    "output_expires_after": _EXPIRES,
                },
            )
        except ProviderError as error:
            if error.usage == Usage():
                with contextlib.suppress(ProviderError):
                    await self._delete(f"/files/{part(file)}", line.model)
            raise
        return self._id(reply, line.model)

    async def find(
        self,
        label: str,
        *,
        model: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> BatchFound:
        """Look for the batch with our label; if none was created, delete the file that was uploaded for it."""
        del ids, known
        oldest = since.timestamp() - SKEW
        async for batch in self._listed(f"/batches?limit={_PAGE}", cursor="after", model=model):
            if section(batch, "metadata").get(LABEL) == label:
                return BatchFound(batch=str(batch["id"]), sure=True)
            if _created(batch) < oldest:
                break
        found = self._none(since)
        if found.sure:
            async for file in self._listed(_FILES, cursor="after", model=model):
                if file.get("filename") == _file_name(label):
                    await self._delete(f"/files/{part(file['id'])}", model)
                if _created(file) < oldest:
                    break
        return found

    async def status(self, batch: str, *, model: str) -> BatchStatus:
        """Return the state of a batch."""
        body = await self._batch(batch, model)
        counts = section(body, "request_counts")
        expires = body.get("expires_at")
        return BatchStatus(
            ended=body.get("status") in _OVER,
            cancelling=body.get("status") in ("cancelling", "cancelled"),
            succeeded=count(counts.get("completed")) or 0,
            failed=count(counts.get("failed")) or 0,
            expires=datetime.fromtimestamp(expires, UTC) if isinstance(expires, int) else None,
        )

    async def cancel(self, batch: str, *, model: str) -> None:
        """Ask the provider to stop."""
        await self._cancel(f"/batches/{part(batch)}/cancel", batch, model)

    async def discard(self, batch: str, *, model: str) -> None:
        """Delete the files of a batch; its record remains, without questions and replies."""
        body = await self._batch(batch, model)
        for field in ("input_file_id", "output_file_id", "error_file_id"):
            if body.get(field):
                await self._delete(f"/files/{part(body[field])}", model)

    def _request(self, call: Call) -> tuple[str, Mapping[str, Any]]:
        return f"/v1{self._adapter.path(call)}", self._adapter.body(call)

    async def _upload(self, lines: Mapping[str, BatchLine], model: str, label: str) -> str:
        rows = (
            f'{{"custom_id":"{one}","method":"POST","url":"{line.path}","body":{line.body}}}\n'
            for one, line in lines.items()
        )
        content = "".join(rows).encode()
        try:
            reply = await self._http.request(
                "post",
                "/files",
                model=model,
                seconds=SLOW,
                headers={"Content-Type": "multipart/form-data"},
                body={"purpose": "batch", "expires_after": _EXPIRES},
                files=[("file", (_file_name(label), content, "application/jsonl"))],
            )
            return self._id(reply, model)
        except ProviderError as error:
            # a file alone is not billed, whatever became of it
            raise with_usage(error, Usage()) from None

    async def _ended(self, batch: str, model: str) -> Ended:
        body = await self._batch(batch, model)
        status = body.get("status")
        if status not in _OVER:
            raise self._not_ended(batch, model)
        files = [body[name] for name in ("output_file_id", "error_file_id") if body.get(name)]
        return Ended(
            files=tuple(f"/files/{part(file)}/content" for file in files),
            path=str(body.get("endpoint")),
            succeeded=count(section(body, "request_counts").get("completed")),
            rest=_RESTS.get(str(status)),
            error=self._refusal(body, model) if status == "failed" and not files else None,
        )

    def _refusal(self, batch: Mapping[str, Any], model: str) -> ProviderError:
        """Return why a batch did not pass the provider's validation: none of its lines was processed."""
        data = section(batch, "errors").get("data")
        first = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
        waits = first.get("code") == "token_limit_exceeded"
        refused = self._http.failure(429 if waits else 400, first, model=model)
        return with_usage(refused, Usage())

    def _result(self, row: Mapping[str, Any], model: str, ended: Ended) -> BatchResult:
        custom_id, response, error = (
            row.get("custom_id"),
            section(row, "response"),
            section(row, "error"),
        )
        if not isinstance(custom_id, str) or not (response or error):
            raise BadRow
        body, status = section(response, "body"), response.get("status_code")
        known = response.get("request_id")
        request_id = known if isinstance(known, str) else None
        reply = Reply(body=body, request_id=request_id, latency=None)
        if status == 200 and not error:
            vectors = ended.path == _EMBEDDINGS
            read = self._adapter.read_vectors if vectors else self._adapter.read
            return self._answered(custom_id, lambda: read(reply, model, tier="batch"))
        fate = _FATES.get(str(error.get("code")))
        if fate is not None:
            return self.unanswered(custom_id, fate, model)
        # an error without a status is the provider's own, e.g. ``request_timeout``
        code = status if isinstance(status, int) else 500
        failure = self._http.failure(code, body or error, model=model, request_id=request_id)
        # lines that fail are not billed, unless they have usage
        billed = usage_of(body) if counts(body) else Usage()
        return BatchResult(id=custom_id, fate=BatchFate.ERRORED, error=with_usage(failure, billed))

    async def _batch(self, batch: str, model: str) -> Mapping[str, Any]:
        return (await self._http.request("get", f"/batches/{part(batch)}", model=model)).body


def _file_name(label: str) -> str:
    return f"{label}.jsonl"


def _created(item: Mapping[str, Any]) -> float:
    """Return when a batch or a file was created, POSIX seconds; unknown: the end of time."""
    created = item.get("created_at")
    return created if isinstance(created, int) else math.inf
