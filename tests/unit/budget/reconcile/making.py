"""Attempts of ours, and the exports that a provider would give of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from posology.budget.reconcile.ours import Ours, tokens
from posology.budget.reconcile.reconciler import Reconciler
from posology.budget.reconcile.report import Group, ReconcileOutput, Verdict
from posology.types import Usage

DAY = 86_400
#: the beginning of 2026-01-15, UTC
MIDNIGHT = int(datetime(2026, 1, 15, tzinfo=UTC).timestamp())
NOON = MIDNIGHT + DAY // 2
#: what serves a model that is asked for by its alias
SERVED = {
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
    "gpt-4o": "gpt-4o-2024-08-06",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-3-5-haiku-latest": "claude-3-5-haiku-20241022",
}
#: how the Console writes them
DISPLAYED = {
    "claude-sonnet-4-5": "Claude Sonnet 4.5",
    "claude-3-5-haiku-latest": "Claude Haiku 3.5",
}
_UNKNOWN: Any = object()


def made(
    name: str,
    *,
    provider: str = "openai",
    model: str | None = None,
    started: float = NOON,
    seconds: float = 1.5,
    usage: Usage | None = _UNKNOWN,
    cost: str | None = "0.0001",
    bound: str = "0.01",
    request_id: str | None = _UNKNOWN,
) -> Ours:
    """An attempt of ours."""
    return Ours(
        id=name,
        tenant="acme",
        provider=provider,
        model=model or ("gpt-4o-mini" if provider == "openai" else "claude-sonnet-4-5"),
        started=started,
        ended=started + seconds,
        usage=Usage(input=100, output=20) if usage is _UNKNOWN else usage,
        cost=None if cost is None else Decimal(cost),
        bound=Decimal(bound),
        input_bound=2_000,
        max_tokens=500,
        request_id=f"req_{name}" if request_id is _UNKNOWN else request_id,
    )


def silent(name: str, **more: Any) -> Ours:
    """An attempt that nobody told the end of."""
    return made(name, usage=None, cost=None, request_id=None, **more)


def turned_away(name: str, **more: Any) -> Ours:
    """An attempt that got a 429."""
    return made(name, usage=Usage(), cost="0", **more)


def compared(paths: Iterable[Path], attempts: Iterable[Ours], **how: Any) -> ReconcileOutput:
    """Both sides beside each other."""
    made = Reconciler(list(paths), **how)
    for attempt in attempts:
        made.add(attempt)
    return made.result(["acme"])


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def drifting(found: ReconcileOutput) -> list[Group]:
    return [group for group in found.groups if group.verdict is Verdict.DRIFT]


def billed(attempts: Iterable[Ours]) -> list[Ours]:
    """Those that a provider counts."""
    return [a for a in attempts if not a.turned_away and a.usage is not None]


def day(attempt: Ours) -> int:
    """The beginning of its day."""
    return int(attempt.started // DAY * DAY)


def iso(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


Cells = dict[tuple[int, str], dict[str, Any]]


def _cells(attempts: Iterable[Ours]) -> Cells:
    """Sums by day and model."""
    cells: Cells = {}
    for attempt in billed(attempts):
        assert attempt.usage is not None
        cell = cells.setdefault((day(attempt), attempt.model), {"requests": 0, "cost": Decimal(0)})
        cell["requests"] += 1
        cell["cost"] += attempt.cost or 0
        for measure, n in tokens(attempt.usage).items():
            cell[measure] = cell.get(measure, 0) + n
    return cells


def _page(buckets: list[dict[str, Any]], *, empty: dict[str, Any]) -> str:
    page = {"object": "page", "data": buckets or [empty], "has_more": False, "next_page": None}
    return json.dumps(page, indent=2)


def _buckets(
    cells: Cells, result: Callable[[str, dict[str, Any]], list[dict[str, Any]]], times: Any
) -> list[dict[str, Any]]:
    days = sorted({one for one, _ in cells})
    return [
        times(one)
        | {
            "results": [
                r for (d, model), cell in cells.items() if d == one for r in result(model, cell)
            ]
        }
        for one in days
    ]


def _unix(one: int) -> dict[str, Any]:
    return {"object": "bucket", "start_time": one, "end_time": one + DAY}


def _rfc(one: int) -> dict[str, Any]:
    return {"starting_at": iso(one), "ending_at": iso(one + DAY)}


def openai_usage(attempts: Iterable[Ours]) -> str:
    def result(model: str, cell: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "object": "organization.usage.completions.result",
                "input_tokens": cell["input"],
                "output_tokens": cell["output"],
                "input_cached_tokens": cell["cache_read"],
                "input_cache_write_tokens": cell["cache_write"],
                "input_audio_tokens": 0,
                "output_audio_tokens": 0,
                "num_model_requests": cell["requests"],
                "project_id": None,
                "user_id": None,
                "api_key_id": None,
                "model": SERVED.get(model, model),
                "batch": None,
            }
        ]

    found = _buckets(_cells(attempts), result, _unix)
    return _page(found, empty=_unix(MIDNIGHT) | {"results": []})


def openai_costs(attempts: Iterable[Ours]) -> str:
    def result(model: str, cell: Mapping[str, Any]) -> list[dict[str, Any]]:
        parts = [cell["cost"] / 4, cell["cost"] - cell["cost"] / 4]
        return [
            {
                "object": "organization.costs.result",
                "amount": {"value": f"{part:f}0000000000", "currency": "usd"},
                "line_item": f"{SERVED.get(model, model)}, {what}",
                "project_id": None,
            }
            for part, what in zip(parts, ("input", "output"), strict=True)
        ]

    found = _buckets(_cells(attempts), result, _unix)
    return _page(found, empty=_unix(MIDNIGHT) | {"results": []})


def openai_csv(attempts: Iterable[Ours]) -> str:
    rows = [
        {
            "start_time": one,
            "end_time": one + DAY,
            "start_time_iso": iso(one),
            "end_time_iso": iso(one + DAY),
            "project_id": "proj_1",
            "num_model_requests": f"{cell['requests']}.0",
            "model": SERVED.get(model, model),
            "input_tokens": f"{cell['input']}.0",
            "output_tokens": f"{cell['output']}.0",
            "input_cached_tokens": f"{cell['cache_read']}.0",
            "input_cache_write_tokens": f"{cell['cache_write']}.0",
        }
        for (one, model), cell in _cells(attempts).items()
    ]
    names = "start_time,end_time,start_time_iso,end_time_iso,project_id,num_model_requests,model,"
    names += "input_tokens,output_tokens,input_cached_tokens,input_cache_write_tokens"
    return _csv(rows, names.split(","))


def anthropic_usage(attempts: Iterable[Ours]) -> str:
    def result(model: str, cell: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "uncached_input_tokens": cell["input_uncached"],
                "cache_creation": {
                    "ephemeral_1h_input_tokens": cell["cache_write_1h"],
                    "ephemeral_5m_input_tokens": cell["cache_write_5m"],
                },
                "cache_read_input_tokens": cell["cache_read"],
                "output_tokens": cell["output"],
                "server_tool_use": {"web_search_requests": 0},
                "api_key_id": None,
                "workspace_id": None,
                "model": SERVED.get(model, model),
                "service_tier": "standard",
                "context_window": "0-200k",
            }
        ]

    found = _buckets(_cells(attempts), result, _rfc)
    return _page(found, empty=_rfc(MIDNIGHT) | {"results": []})


def anthropic_costs(attempts: Iterable[Ours]) -> str:
    def result(model: str, cell: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "currency": "USD",
                "amount": f"{cell['cost'] * 100:f}",
                "workspace_id": None,
                "description": f"{DISPLAYED.get(model, model)} Usage - Output Tokens",
                "cost_type": "tokens",
                "context_window": "0-200k",
                "model": SERVED.get(model, model),
                "service_tier": "standard",
                "token_type": "output_tokens",
            }
        ]

    found = _buckets(_cells(attempts), result, _rfc)
    return _page(found, empty=_rfc(MIDNIGHT) | {"results": []})


def anthropic_csv(attempts: Iterable[Ours]) -> str:
    rows = [
        {
            "usage_date_utc": iso(one)[:10],
            "model_version": SERVED.get(model, model),
            "api_key": "posology",
            "workspace": "Default",
            "usage_type": "standard",
            "context_window": "≤ 200k",
            "usage_input_tokens_no_cache": cell["input_uncached"],
            "usage_input_tokens_cache_write_5m": cell["cache_write_5m"],
            "usage_input_tokens_cache_write_1h": cell["cache_write_1h"],
            "usage_input_tokens_cache_read": cell["cache_read"],
            "usage_output_tokens": cell["output"],
            "web_search_count": 0,
        }
        for (one, model), cell in _cells(attempts).items()
    ]
    names = "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,"
    names += "usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
    names += "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,"
    return _csv(rows, f"{names}web_search_count".split(","))


def anthropic_cost_csv(attempts: Iterable[Ours]) -> str:
    """Dollars to the cent, models by their names for people."""
    rows = [
        {
            "usage_date_utc": iso(one)[:10],
            "model": DISPLAYED.get(model, model),
            "workspace": "Default",
            "api_key": "posology",
            "usage_type": "message",
            "context_window": "≤ 200k",
            "token_type": "output",
            "cost_usd": f"{cell['cost']:.2f}",
        }
        for (one, model), cell in _cells(attempts).items()
    ]
    names = "usage_date_utc,model,workspace,api_key,usage_type,context_window,token_type,cost_usd"
    return _csv(rows, names.split(","))


def request_rows(attempts: Iterable[Ours]) -> list[dict[str, Any]]:
    return [
        {
            "request_id": a.request_id,
            "started_at": iso(a.started),
            "model": SERVED.get(a.model, a.model),
            "prompt_tokens": a.usage.total_input,
            "cached_tokens": a.usage.cache_read,
            "cache_write_5m_tokens": a.usage.cache_write_5m,
            "cache_write_1h_tokens": a.usage.cache_write_1h,
            "completion_tokens": a.usage.total_output,
            "cost_usd": f"{a.cost:f}",
        }
        for a in billed(attempts)
        if a.usage is not None
    ]


def requests_csv(attempts: Iterable[Ours]) -> str:
    return _csv(request_rows(attempts), list(_ROW))


def requests_jsonl(attempts: Iterable[Ours]) -> str:
    return "".join(json.dumps(row) + "\n" for row in request_rows(attempts))


_ROW = request_rows([made("x")])[0]

#: whole exports of both usage and costs, by provider
FORMATS: Mapping[str, Mapping[str, Callable[[Iterable[Ours]], str]]] = {
    "openai": {
        "usage.json": openai_usage,
        "costs.json": openai_costs,
        "usage.csv": openai_csv,
        "requests.csv": requests_csv,
        "requests.jsonl": requests_jsonl,
    },
    "anthropic": {
        "usage.json": anthropic_usage,
        "costs.json": anthropic_costs,
        "usage.csv": anthropic_csv,
        "costs.csv": anthropic_cost_csv,
        "requests.csv": requests_csv,
        "requests.jsonl": requests_jsonl,
    },
}


def _csv(rows: list[dict[str, Any]], names: list[str]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, names)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
