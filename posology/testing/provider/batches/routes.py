"""The batch APIs of both providers over a book of batches, written from the provider's side.

It shares no code with the adapters, see :mod:`posology.testing.provider.formats`.
"""

from __future__ import annotations

import email
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, unquote

from posology.testing.provider import formats
from posology.testing.provider.batches.book import BatchBook, Result, StubBatch
from posology.testing.provider.responses import Response

_DAY = 86_400
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class BatchRoutes:
    """Answers requests of the batch APIs.

    Args:
        book: batches and files.
    """

    def __init__(self, book: BatchBook) -> None:
        self.book = book
        anthropic = "/v1/messages/batches"
        self._routes: tuple[tuple[str, str, Callable[..., Response]], ...] = (
            ("POST", "/v1/files", self._upload),
            ("GET", "/v1/files", self._list_files),
            ("GET", "/v1/files/([^/]+)/content", self._content),
            ("DELETE", "/v1/files/([^/]+)", self._delete_file),
            ("POST", "/v1/batches", self._create_openai),
            ("GET", "/v1/batches", self._list_openai),
            ("GET", "/v1/batches/([^/]+)", self._status),
            ("POST", "/v1/batches/([^/]+)/cancel", self._cancel),
            ("POST", anthropic, self._create_anthropic),
            ("GET", anthropic, self._list_anthropic),
            ("GET", f"{anthropic}/([^/]+)", self._status),
            ("DELETE", f"{anthropic}/([^/]+)", self._delete_batch),
            ("POST", f"{anthropic}/([^/]+)/cancel", self._cancel),
            ("GET", f"{anthropic}/([^/]+)/results", self._results),
        )

    def handle(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Response | None:
        """Return the response to a request; ``None``: it is of no batch API.

        Args:
            method: of HTTP.
            target: path and query.
            headers: names in lower case.
            body: as it came.
        """
        path, _, query = target.partition("?")
        for known, pattern, answer in self._routes:
            found = re.fullmatch(pattern, path) if known == method else None
            if found is not None:
                names = [unquote(name) for name in found.groups()]
                asked = {name: values[-1] for name, values in parse_qs(query).items()}
                with self.book.lock:
                    return answer(*names, query=asked, headers=headers, body=body)
        return None

    def _upload(self, *, headers: Mapping[str, str], body: bytes, **_: Any) -> Response:
        head = f"content-type: {headers.get('content-type', '')}\r\n\r\n".encode()
        parts = email.message_from_bytes(head + body).get_payload()
        fields = {}
        for part in parts if isinstance(parts, list) else []:
            assert isinstance(part, Message)
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            fields[str(name)] = (part.get_filename() or "", content.decode())
        if "file" not in fields or fields.get("purpose", ("", ""))[1] != "batch":
            return _error("openai", 400, "a file and the purpose batch are needed")
        file = f"file-{secrets.token_hex(8)}"
        self.book.files[file] = fields["file"]
        return _json(self._file(file))

    def _file(self, file: str) -> dict[str, Any]:
        name, content = self.book.files[file]
        return {
            "id": file,
            "object": "file",
            "bytes": len(content.encode()),
            "created_at": int(_now()),
            "filename": name,
            "purpose": "batch",
            "status": "processed",
        }

    def _list_files(self, *, query: Mapping[str, str], **_: Any) -> Response:
        files = [self._file(file) for file in reversed(self.book.files)]
        return _json(_page(files, query.get("after"), int(query.get("limit", "10000"))))

    def _delete_file(self, file: str, **_: Any) -> Response:
        batch, kind = self._of_file(file)
        if batch is not None:
            batch.results = [one for one in batch.results if _is_output(one) != (kind == "output")]
        elif self.book.files.pop(file, None) is None:
            return _error("openai", 404, f"No such File object: {file}")
        return _json({"id": file, "object": "file", "deleted": True})

    def _content(self, file: str, **_: Any) -> Response:
        batch, kind = self._of_file(file)
        if batch is None:
            return _error("openai", 404, f"No such File object: {file}")
        some = [result for result in batch.results if _is_output(result) == (kind == "output")]
        return self._file_response(batch, some, _openai_line)

    def _of_file(self, file: str) -> tuple[StubBatch | None, str]:
        found = re.fullmatch(r"file-(output|error)-(.+)", file)
        return (self.book.batches.get(found[2]), found[1]) if found else (None, "")

    def _create_openai(self, *, body: bytes, **_: Any) -> Response:
        asked = json.loads(body)
        if asked.get("input_file_id") not in self.book.files:
            return _error("openai", 400, "no such input file")
        lines = self.book.files[asked["input_file_id"]][1].splitlines()
        rows, refused = _openai_rows(lines, asked["endpoint"])
        batch = self.book.create(
            "openai",
            path=asked["endpoint"],
            rows=rows,
            file=asked["input_file_id"],
            metadata=asked.get("metadata"),
            refused=refused,
        )
        return self._created(batch)

    def _create_anthropic(self, *, body: bytes, **_: Any) -> Response:
        rows = {}
        for request in json.loads(body)["requests"]:
            custom_id = request["custom_id"]
            if custom_id in rows or not _CUSTOM_ID.fullmatch(custom_id):
                return _error("anthropic", 400, f"custom_id: {custom_id}")
            if not {"model", "max_tokens", "messages"} <= set(request["params"]):
                return _error("anthropic", 400, "params: a field is missing")
            rows[custom_id] = request["params"]
        batch = self.book.create("anthropic", path="/v1/messages", rows=rows)
        return self._created(batch)

    def _created(self, batch: StubBatch) -> Response:
        if not self.book.confirm(batch):
            return Response(played="create cut", code=None, finished=True)
        return _json(_OBJECTS[batch.provider](batch))

    def _list_openai(self, *, query: Mapping[str, str], **_: Any) -> Response:
        made = [_openai_batch(one) for one in self._latest("openai")]
        return _json(_page(made, query.get("after"), int(query.get("limit", "20"))))

    def _list_anthropic(self, *, query: Mapping[str, str], **_: Any) -> Response:
        made = [_anthropic_batch(one) for one in self._latest("anthropic") if not one.deleted]
        return _json(_page(made, query.get("after_id"), int(query.get("limit", "20"))))

    def _latest(self, provider: str) -> Iterable[StubBatch]:
        for batch in reversed(self.book.batches.values()):
            if batch.provider == provider:
                # time passes for a batch whose id its client does not know, too
                self.book.poll(batch)
                yield batch

    def _status(self, name: str, **_: Any) -> Response:
        batch = self.book.batches.get(name)
        if batch is None or (batch.deleted and batch.provider == "anthropic"):
            return _error(_speaker(name), 404, f"no batch {name}")
        self.book.poll(batch)
        return _json(_OBJECTS[batch.provider](batch))

    def _cancel(self, name: str, **_: Any) -> Response:
        batch = self.book.batches.get(name)
        if batch is None:
            return _error(_speaker(name), 404, f"no batch {name}")
        if batch.ended is not None:
            return _error(batch.provider, 400, "the batch has ended")
        self.book.cancel(batch)
        return _json(_OBJECTS[batch.provider](batch))

    def _delete_batch(self, name: str, **_: Any) -> Response:
        batch = self.book.batches.get(name)
        if batch is None or batch.deleted:
            return _error("anthropic", 404, f"no batch {name}")
        if batch.ended is None:
            return _error("anthropic", 400, "the batch has not ended")
        self.book.delete(batch)
        return _json({"id": name, "type": "message_batch_deleted"})

    def _results(self, name: str, **_: Any) -> Response:
        batch = self.book.batches.get(name)
        if batch is None or batch.deleted or batch.ended is None:
            return _error("anthropic", 404, f"no results of {name}")
        return self._file_response(batch, batch.results, _anthropic_line)

    def _file_response(
        self, batch: StubBatch, results: list[Result], write: Callable[[Result], dict[str, Any]]
    ) -> Response:
        if self.book.results_are_lost(batch):
            return _error(batch.provider, 404, "the results are gone")
        lines = (json.dumps(write(one), ensure_ascii=False) for one in results)
        texts = [
            line[: len(line) // 2] if one.broken else line
            for line, one in zip(lines, results, strict=True)
        ]
        content = "".join(f"{text}\n" for text in texts).encode()
        whole = Response(
            played="results",
            code=200,
            body=content,
            content_length=len(content),
            headers={"content-type": "application/octet-stream"},
        )
        if batch.reads >= self.book.faults.reads_failed:
            return whole
        batch.reads += 1
        if batch.reads % 2:
            return _error(batch.provider, 500, "try again")
        half = content[: len(content) // 2]
        return Response(
            played="results cut",
            code=200,
            body=half,
            content_length=len(content) + 1,
            headers=whole.headers,
        )


def _openai_rows(lines: list[str], endpoint: str) -> tuple[dict[str, Any], str | None]:
    """Return the rows of an uploaded file, and why they make no batch."""
    rows: dict[str, Any] = {}
    for line in lines:
        row = json.loads(line)
        if row["custom_id"] in rows:
            return {}, "duplicate_custom_id"
        if row["url"] != endpoint or row["method"] != "POST":
            return {}, "mismatched_endpoint"
        rows[row["custom_id"]] = row["body"]
    if len({row["model"] for row in rows.values()}) != 1:
        return {}, "mismatched_model"
    return rows, None


def _openai_status(batch: StubBatch) -> str:
    if batch.refused is not None:
        return "failed"
    if batch.ended is None:
        return "cancelling" if batch.cancelled else "in_progress" if batch.polls else "validating"
    if batch.cancelled:
        return "cancelled"
    return "expired" if batch.count("expired") else "completed"


def _openai_batch(batch: StubBatch) -> dict[str, Any]:
    outputs = any(map(_is_output, batch.results))
    errors = not all(map(_is_output, batch.results))
    reason = {"code": batch.refused, "message": batch.refused, "line": 1, "param": None}
    done = batch.count("succeeded")
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.path,
        "input_file_id": batch.file,
        "completion_window": "24h",
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + _DAY,
        "status": _openai_status(batch),
        "metadata": batch.metadata,
        "errors": {"object": "list", "data": [reason]} if batch.refused else None,
        "output_file_id": f"file-output-{batch.id}" if batch.ended and outputs else None,
        "error_file_id": f"file-error-{batch.id}" if batch.ended and errors else None,
        "request_counts": {
            "total": len(batch.rows),
            "completed": done,
            "failed": batch.count("errored"),
        },
    }


def _openai_line(result: Result) -> dict[str, Any]:
    codes = {"expired": "batch_expired", "canceled": "batch_cancelled"}
    cut_off = codes.get(result.fate)
    answered = {
        "status_code": result.code,
        "request_id": f"req_{result.custom_id}",
        "body": result.body,
    }
    return {
        "id": f"batch_req_{result.custom_id}",
        "custom_id": result.custom_id,
        "response": None if cut_off else answered,
        "error": {"code": cut_off, "message": "not processed"} if cut_off else None,
    }


def _is_output(result: Result) -> bool:
    return result.fate == "succeeded"


def _anthropic_batch(batch: StubBatch) -> dict[str, Any]:
    over = batch.ended is not None
    counts = {name: batch.count(name) for name in ("succeeded", "errored", "canceled", "expired")}
    state = "ended" if over else "canceling" if batch.cancelled else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": state,
        "request_counts": {"processing": 0 if over else len(batch.rows), **counts},
        "created_at": _rfc3339(batch.created),
        "expires_at": _rfc3339(batch.created + _DAY),
        "ended_at": _rfc3339(batch.ended) if batch.ended else None,
        "cancel_initiated_at": _rfc3339(batch.created) if batch.cancelled else None,
        "archived_at": None,
        "results_url": f"https://stub.invalid/v1/messages/batches/{batch.id}/results"
        if over
        else None,
    }


def _anthropic_line(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {"type": result.fate}
    if result.fate == "succeeded":
        found["message"] = result.body
    elif result.fate == "errored":
        kind = _ANTHROPIC_TYPES.get(result.code, "api_error")
        found["error"] = formats.anthropic_error(result.code, kind, "no")
    return {"custom_id": result.custom_id, "result": found}


_OBJECTS: Mapping[str, Callable[[StubBatch], dict[str, Any]]] = {
    "openai": _openai_batch,
    "anthropic": _anthropic_batch,
}


def _speaker(name: str) -> str:
    return "anthropic" if name.startswith("msgbatch_") else "openai"


def _page(items: list[dict[str, Any]], after: str | None, limit: int) -> dict[str, Any]:
    names = [item["id"] for item in items]
    start = names.index(after) + 1 if after in names else 0
    some = items[start : start + limit]
    return {
        "object": "list",
        "data": some,
        "first_id": some[0]["id"] if some else None,
        "last_id": some[-1]["id"] if some else None,
        "has_more": start + limit < len(items),
    }


def _json(body: dict[str, Any], code: int = 200) -> Response:
    content = json.dumps(body).encode()
    return Response(
        played=f"status {code}",
        code=code,
        body=content,
        content_length=len(content),
        headers={"content-type": "application/json"},
    )


def _error(provider: str, code: int, message: str) -> Response:
    return _json(getattr(formats, f"{provider}_error")(code, None, message), code)


def _now() -> float:
    return datetime.now(UTC).timestamp()


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
