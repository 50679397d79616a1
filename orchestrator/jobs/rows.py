"""The rows of a batch: each a request or an error when it comes in, a result or an error when it is over."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.jobs import records
from orchestrator.question.request import ALONE, DEADLINE, JobRequest
from orchestrator.settings import Settings
from posology.errors import InvalidQuery, JobCancelled, JobNotFound, PosologyError
from posology.published.calls import ErrorBody, Spending
from posology.published.jobs import BatchRow
from posology.types import JobState
from strategies import takes_compressor

#: maximum bytes of one row: the longest question with its options, every character escaped
MAX_ROW = 65_536
#: maximum characters of a row's own id, as JSON
MAX_ID = 1_000
#: characters of an error's texts that are stored
_LONGEST = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row as it was handed in."""

    #: place among the rows, from 0
    number: int
    #: the row's own id as JSON; ``None`` where it has none
    id: str | None
    #: with its defaults filled in; ``None`` where the row cannot be asked
    request: JobRequest | None
    #: why not; ``None`` for a good row
    error: ErrorBody | None

    @property
    def content(self) -> bytes:
        """Return the identity of a row: equal for equal rows of a batch."""
        what = self.request or self.error
        assert what is not None
        return f"{self.id}\n{what.model_dump_json()}\n".encode()


def read_row(
    number: int, line: int, raw: str | bytes, defaults: Mapping[str, Any], settings: Settings
) -> Row:
    """Read one line; its content never raises an error.

    Args:
        number: number of the row, from 0.
        line: number of the line, from 1, for the error.
        raw: the line.
        defaults: values of the fields that the row omits.
        settings: values of the fields that both omit.
    """
    own: str | None = None
    try:
        data = _object(raw)
        own = _own_id(data)
        request = JobRequest.parse({**_left(defaults, data), **data}).settled(
            settings, deadline=DEADLINE
        )
        for name in sorted(ALONE):
            # whose they are, only the service that has them knows
            if getattr(request, name) is not None:
                raise InvalidQuery(
                    f"a row of a batch cannot have the field {name}: submit its question alone",
                    field=name,
                )
    except PosologyError as error:
        return Row(number=number, id=own, request=None, error=_body(error, line))
    return Row(number=number, id=own, request=request, error=None)


def check_defaults(defaults: Mapping[str, Any], settings: Settings) -> None:
    """Check defaults once, instead of rejecting every row.

    Raises:
        InvalidQuery: a default is invalid.
        UnknownModel: the provider is unknown, or the name has no provider.
    """
    # form and options belong together, and only a row has both
    alone = {k: v for k, v in defaults.items() if k not in ("form", "options")}
    JobRequest.parse({**alone, "question": "?"}).settled(settings)


def output_row(
    number: int,
    own: str | None,
    rejected: str | None,
    job: str | None,
    record: Mapping[str, str],
    calls: Mapping[str, str],
    *,
    cancelled: PosologyError | None = None,
    advice: bool = True,
) -> BatchRow:
    """A row as it is now. It has a result or an error once it is over, and neither before.

    Args:
        number: its place.
        own: its own id as JSON.
        rejected: the error of a row that is no job, as JSON.
        job: its job's id; ``None`` also while it is not submitted.
        record: the job's hash, empty where it is forgotten.
        calls: the hash of the job's attempts.
        cancelled: error of a row that was not submitted before its batch was cancelled; ``None``: it was not.
        advice: see :func:`~orchestrator.jobs.records.output`.
    """
    out = records.output(record, calls, advice=advice) if record else None
    if rejected is not None:
        error: ErrorBody | None = ErrorBody.model_validate_json(rejected)
    elif out is not None:
        error = out.error
        if out.state is JobState.CANCELLED:
            error = _error(JobCancelled(f"job {job} was cancelled", job=out.id), out.spending)
    elif job is not None:
        error = _error(JobNotFound(f"there is no job {job} any more", job=job), None)
    else:
        error = None if cancelled is None else _error(cancelled, None)
    return BatchRow(
        row=number,
        id=None if own is None else json.loads(own),
        job=job,
        state=out.state if out else None,
        result=out.result if out else None,
        error=error,
    )


def _left(defaults: Mapping[str, Any], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The defaults that a row leaves: what it says itself stands, and no default is in its way.

    Strategy, share, compressor and policy say together how a question is answered. So a row that names

    - a policy has it as it is written, without the batch's strategy, share and compressor;
    - a strategy is not for the batch's policy, and where it does not compress, not for a share or a compressor;
    - a compressor is not for a strategy of the batch that has no use for it;
    - options is not for the batch's form.
    """
    gone = set()
    if data.get("policy") is not None:
        gone |= {"strategy", "keep", "compressor"}
    elif data.get("strategy") is not None:
        gone.add("policy")
        if not takes_compressor(data["strategy"]):
            gone |= {"keep", "compressor"}
    elif "strategy" in data:
        # no strategy: the policy is to decide, and it has no use for a share
        gone.add("keep")
    elif data.get("compressor") is not None and not takes_compressor(defaults.get("strategy")):
        gone.add("strategy")
    if data.get("options"):
        gone.add("form")
    return {name: value for name, value in defaults.items() if name not in gone}


def _error(error: PosologyError, spent: Spending | None) -> ErrorBody:
    return ErrorBody(
        type=type(error).__name__,
        message=error.message,
        exit_code=error.exit_code,
        details=error.details,
        spending=spent,
    )


def _object(raw: str | bytes) -> dict[str, Any]:
    if len(raw) > MAX_ROW:
        raise _bad(f"the row must have at most {MAX_ROW} bytes (got {len(raw)})")
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise _bad(f"the row is not UTF-8 (byte {error.start + 1})") from None
    try:
        data = json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant)
    except RecursionError:
        raise _bad("the row is nested too deeply") from None
    except ValueError as error:
        raise _bad(f"the row is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise _bad(f"the row must be a JSON object (got {type(data).__name__})")
    return data


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _own_id(data: dict[str, Any]) -> str | None:
    if "id" not in data:
        return None
    own = data.pop("id")
    if not (own is None or isinstance(own, str | int | float)):
        raise InvalidQuery("id must be a string, a number, true, false or null", field="id")
    # 1e999 is valid JSON that no float can hold
    if isinstance(own, float) and not math.isfinite(own):
        raise InvalidQuery("id must be a finite number", field="id")
    written = json.dumps(own, ensure_ascii=False)
    if len(written) > MAX_ID:
        raise InvalidQuery(f"id may have {MAX_ID} characters (got {len(written)})", field="id")
    try:
        written.encode()
    except UnicodeEncodeError:
        raise InvalidQuery("id must be valid Unicode", field="id") from None
    return written


def _bad(message: str) -> InvalidQuery:
    return InvalidQuery(message, field="row")


def _body(error: PosologyError, line: int) -> ErrorBody:
    details = {k: _valid(v) if isinstance(v, str) else v for k, v in error.details.items()}
    return ErrorBody(
        type=type(error).__name__,
        # it may name a field of the row, which may be called anything
        message=_valid(error.message),
        exit_code=error.exit_code,
        details={**details, "line": line},
        spending=None,
    )


def _valid(text: str) -> str:
    """The text without what UTF-8 cannot write, and no longer than a message."""
    return text[:_LONGEST].encode(errors="replace").decode()
