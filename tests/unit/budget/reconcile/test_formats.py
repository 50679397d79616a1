"""Every known format of an export, and what is none."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from posology.budget.reconcile import exports
from posology.budget.reconcile.report import Kind, Measure
from posology.budget.reconcile.rows import Row, paid_for
from posology.errors import BadFile, BadRecord, InputError
from tests.unit.budget.reconcile.making import DAY, MIDNIGHT, written

GOLDEN = Path(__file__).parent / "golden"
FIRST, SECOND = float(MIDNIGHT), float(MIDNIGHT + DAY)


def _rows(name: str) -> tuple[exports.Export, list[Row]]:
    export = exports.inspect(GOLDEN / name)
    return export, list(export.rows())


def test_openai_usage_counts_cached_tokens_within_its_input() -> None:
    export, rows = _rows("openai_usage.json")
    assert (export.provider, export.kind) == ("openai", Kind.USAGE)
    assert export.format == "OpenAI usage, JSON"
    assert [(row.span.start, row.span.end, row.model) for row in rows] == [
        (FIRST, SECOND, "gpt-4o-2024-08-06"),
        (FIRST, SECOND, "gpt-5-mini-2025-08-07"),
        (SECOND, SECOND + DAY, None),
    ]
    assert rows[0].figures == {
        Measure.REQUESTS: 10,
        Measure.INPUT: 59_200,
        Measure.UNCACHED: 53_440,
        Measure.CACHE_READ: 5_760,
        Measure.OUTPUT: 10_646,
    }
    assert rows[2].figures == {}


def test_openai_costs_are_exact_and_their_line_items_name_models() -> None:
    export, rows = _rows("openai_costs.json")
    assert export.kind is Kind.COST
    assert [(row.model, row.figures[Measure.COST]) for row in rows] == [
        ("gpt-4o-mini-2024-07-18", Decimal(0)),
        ("gpt-4o-mini-2024-07-18", Decimal("0.0000045")),
        ("gpt-4o-mini-2024-07-18", Decimal("0.0000342")),
        ("web search tool calls", Decimal("0.05")),
        ("evals | gpt-4o-mini-2024-07-18", Decimal("0.028607")),
    ]
    assert all(row.rounding == 0 for row in rows)


@pytest.mark.parametrize("service", ["", "Flex | ", "Batch | ", "Priority | "])
def test_openais_costs_of_all_tiers_are_their_model_s(service: str) -> None:
    # as in the ledger, where each attempt has the price of the tier that served it
    for kind in ("input", "cached input", "output"):
        assert paid_for(f"{service}gpt-6-luna-2026-06-02, {kind}") == "gpt-6-luna-2026-06-02"


def test_openais_dashboard_has_an_empty_row_for_a_day_without_use() -> None:
    export, rows = _rows("openai_usage.csv")
    assert (export.provider, export.kind) == ("openai", Kind.USAGE)
    assert [row.figures.get(Measure.INPUT) for row in rows] == [46_264, 5_783, None]
    assert rows[0].figures[Measure.UNCACHED] == 38_072
    assert (rows[2].span.start, rows[2].span.end) == (SECOND, SECOND + DAY)


def test_openais_older_activity_export_is_read_by_its_older_names() -> None:
    export, (row,) = _rows("openai_activity.csv")
    assert export.kind is Kind.USAGE
    assert (row.span.start, row.span.end) == (FIRST, SECOND)
    assert row.figures == {
        Measure.REQUESTS: 37,
        Measure.INPUT: 51_200,
        Measure.CACHE_READ: 2_304,
        Measure.UNCACHED: 48_896,
        Measure.OUTPUT: 9_100,
    }


def test_openais_costs_as_csv() -> None:
    export, (paid, idle) = _rows("openai_costs.csv")
    assert export.kind is Kind.COST
    assert (paid.model, paid.figures) == (
        "gpt-5-mini-2025-08-07",
        {Measure.COST: Decimal("0.895874")},
    )
    assert paid.rounding == Decimal("0.5e-16")
    assert idle.figures == {}


def test_anthropic_usage_has_disjoint_kinds_of_input_and_no_requests() -> None:
    export, (row,) = _rows("anthropic_usage.json")
    assert (export.provider, export.kind) == ("anthropic", Kind.USAGE)
    assert (row.span.start, row.span.end) == (FIRST, SECOND)
    assert row.figures == {
        Measure.UNCACHED: 1_500,
        Measure.CACHE_WRITE_1H: 1_000,
        Measure.CACHE_WRITE_5M: 500,
        Measure.CACHE_WRITE: 1_500,
        Measure.CACHE_READ: 200,
        Measure.INPUT: 3_200,
        Measure.OUTPUT: 500,
    }


def test_anthropic_costs_are_cents() -> None:
    export, rows = _rows("anthropic_costs.json")
    assert export.kind is Kind.COST
    assert [(row.model, row.figures[Measure.COST]) for row in rows] == [
        ("claude-sonnet-4-5-20250929", Decimal("1.2378912")),
        ("Web Search Usage", Decimal("0.2")),
    ]


def test_the_consoles_usage() -> None:
    export, (first, second) = _rows("anthropic_usage.csv")
    assert (export.provider, export.kind) == ("anthropic", Kind.USAGE)
    assert first.figures[Measure.INPUT] == 46_981 + 15_969 + 11 + 2_400
    assert first.figures[Measure.CACHE_WRITE] == 15_980
    assert (second.span.start, second.model) == (SECOND, "claude-haiku-4-5-20251001")


def test_the_consoles_costs_are_rounded_to_cents() -> None:
    export, rows = _rows("anthropic_costs.csv")
    assert export.kind is Kind.COST
    assert [(row.model, row.figures[Measure.COST], row.rounding) for row in rows] == [
        ("Claude Sonnet 4.5", Decimal("0.14"), Decimal("0.005")),
        ("Claude Sonnet 4.5", Decimal("0.25"), Decimal("0.005")),
        ("web_search", Decimal("0.02"), Decimal("0.005")),
    ]


@pytest.mark.parametrize("shape", ["list", "lines"])
def test_several_pages_in_a_file_are_refused(tmp_path: Path, shape: str) -> None:
    page = (GOLDEN / "openai_usage.json").read_text(encoding="utf-8")
    text = f"[{page}, {page}]" if shape == "list" else f"{page}\n{page}"
    with pytest.raises(BadFile, match=r"one page|each page"):
        exports.inspect(written(tmp_path, "x", text))


def test_a_file_may_be_gzipped_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "usage.csv.gz"
    content = (GOLDEN / "anthropic_usage.csv").read_bytes()
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")))
    assert list(exports.inspect(path).rows()) == _rows("anthropic_usage.csv")[1]


def test_semicolons_and_headings_for_people(tmp_path: Path) -> None:
    text = "Usage Date (UTC);Model;Input Tokens;Cache Read Input Tokens;Output Tokens\n"
    path = written(tmp_path, "x.csv", f"{text}2026-01-15;claude-sonnet-4-5;100;300;40\n")
    (row,) = exports.inspect(path).rows()
    assert (row.figures[Measure.UNCACHED], row.figures[Measure.INPUT]) == (100, 400)


def test_a_file_that_does_not_say_whose_it_is_is_read_as_one_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "x.csv", "date,model,input_tokens,output_tokens\n2026-01-15,m,10,2\n")
    with pytest.raises(BadFile, match="--provider"):
        exports.inspect(path)
    (openai,) = exports.inspect(path, provider="openai").rows()
    (anthropic,) = exports.inspect(path, provider="anthropic").rows()
    assert Measure.UNCACHED not in openai.figures
    assert anthropic.figures[Measure.UNCACHED] == 10


def test_a_file_of_the_other_provider_is_refused() -> None:
    with pytest.raises(BadFile, match=r"openai.*anthropic"):
        exports.inspect(GOLDEN / "openai_usage.json", provider="anthropic")


def test_requests_as_a_reply_has_its_usage(tmp_path: Path) -> None:
    reply = {
        "id": "chatcmpl-1",
        "created": MIDNIGHT,
        "model": "gpt-4o-mini-2024-07-18",
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 64},
        },
    }
    path = written(tmp_path, "x.jsonl", json.dumps(reply) + "\n")
    export = exports.inspect(path)
    assert (export.kind, export.provider) == (Kind.REQUESTS, "openai")
    (row,) = export.rows()
    assert (row.id, row.span.start, row.where) == ("chatcmpl-1", FIRST, f"{path}:1")
    assert row.figures == {
        Measure.INPUT: 100,
        Measure.UNCACHED: 36,
        Measure.CACHE_READ: 64,
        Measure.OUTPUT: 20,
    }


def test_a_gateways_requests_name_the_provider_before_the_model(tmp_path: Path) -> None:
    text = "request_id,client_request_id,time,model,input_tokens,cache_read_input_tokens,output_tokens,cost\n"
    text += "req_1,ours,2026-01-15T10:00:00+02:00,anthropic/claude-sonnet-4-5,100,30,20,0.0006\n"
    export = exports.inspect(written(tmp_path, "x.csv", text))
    assert export.provider == "anthropic"
    (row,) = export.rows()
    assert (row.id, row.client_id, row.model) == ("req_1", "ours", "claude-sonnet-4-5")
    assert row.span.start == FIRST + 8 * 3_600
    assert row.figures[Measure.INPUT] == 130
    assert row.rounding == Decimal("0.00005")


def test_anthropics_reply_names_its_cache_writes_by_lifetime(tmp_path: Path) -> None:
    writes = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "cache_creation": writes}
    reply = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": usage | {"output_tokens": 5}}
    (row,) = exports.inspect(written(tmp_path, "x.jsonl", json.dumps(reply))).rows()
    assert (row.figures[Measure.CACHE_WRITE], row.figures[Measure.INPUT]) == (7, 19)


def test_input_is_unknown_without_its_cache_reads(tmp_path: Path) -> None:
    text = "usage_date_utc,model,input_tokens,output_tokens\n2026-01-15,m,10,2\n"
    (row,) = exports.inspect(written(tmp_path, "x.csv", text)).rows()
    assert row.figures == {Measure.UNCACHED: 10, Measure.OUTPUT: 2}


def test_an_embedding_has_no_output(tmp_path: Path) -> None:
    sort = {"object": "organization.usage.embeddings.result", "output_tokens": None}
    (row,) = exports.inspect(written(tmp_path, "x", _page(**sort))).rows()
    assert row.figures == {Measure.INPUT: 1, Measure.OUTPUT: 0}


OPENAI = "start_time,model,num_requests,input_tokens,input_cached_tokens,output_tokens\n"
COSTS = "start_time,amount_value,amount_currency,line_item\n"
BUCKET = {"start_time": MIDNIGHT, "end_time": MIDNIGHT + DAY}
RESULT = {"object": "organization.usage.completions.result", "input_tokens": 1, "output_tokens": 1}


def _page(**result: object) -> str:
    return json.dumps({"data": [BUCKET | {"results": [RESULT | result]}]})


@pytest.mark.parametrize(
    ("text", "kind", "line", "reason"),
    [
        ("", BadFile, None, "it is empty"),
        (" \n", BadFile, None, "it is empty"),
        ("a,b\n1,2\n", BadFile, None, "columns are a, b"),
        ("<html>\n", BadFile, None, "columns are html"),
        ("a,a\n", BadFile, None, "duplicate"),
        ("start_time_iso,,b\n", BadFile, None, "does not name the columns"),
        (f"{OPENAI}{MIDNIGHT},m,1,2\n", BadRecord, 2, "4 cells"),
        (f"{OPENAI}\n{MIDNIGHT},m,1,x,0,2\n", BadRecord, 3, "input_tokens must"),
        (f"{OPENAI}{MIDNIGHT},m,1,-2,0,2\n", BadRecord, 2, "input_tokens must"),
        (f"{OPENAI}{MIDNIGHT},m,1,2.5,0,2\n", BadRecord, 2, "input_tokens must"),
        (f"{OPENAI}{MIDNIGHT},m,1,2e3,0,2\n", BadRecord, 2, "input_tokens must"),
        (f"{OPENAI}{MIDNIGHT},m,1,{'9' * 40},0,2\n", BadRecord, 2, "input_tokens must"),
        (f"{OPENAI}{MIDNIGHT},m,1,10,20,2\n", BadRecord, 2, "20 cached tokens of 10"),
        (f"{OPENAI}yesterday,m,1,10,2,2\n", BadRecord, 2, "start_time must"),
        (f"{OPENAI}2026-02-30,m,1,10,2,2\n", BadRecord, 2, "start_time must"),
        (f'{OPENAI}{MIDNIGHT},"m,1,10,2,2\n', BadRecord, 2, "CSV"),
        (f"{COSTS}{MIDNIGHT},,usd,m\n", BadRecord, 2, "neither tokens nor an amount"),
        (
            "usage_date_utc,input_tokens,output_tokens,cost_usd\n2026-01-15,1,1,\n",
            BadRecord,
            2,
            "amount is missing",
        ),
        ("usage_date_utc,tokens\n2026-01-15,1\n", BadFile, None, "unknown export"),
        (_page(output_tokens=None), BadRecord, 1, "output_tokens: missing"),
        (f"{COSTS}{MIDNIGHT},NaN,usd,m\n", BadRecord, 2, "amount_value must"),
        (f'{COSTS}{MIDNIGHT},"0,125",usd,m\n', BadRecord, 2, "amount_value must"),
        (
            f"{COSTS}{MIDNIGHT},1.500,usd,m\n".replace(",", ";").replace(".", ","),
            BadRecord,
            2,
            "decimal comma",
        ),
        ("request_id,model,cost\nr,gpt-5,1e-9999999\nr,gpt-5,x\n", BadRecord, 3, "cost must"),
        (f"{COSTS}{MIDNIGHT},1e99999,usd,m\n", BadRecord, 2, "amount_value must"),
        (f"{COSTS}{MIDNIGHT},1.5,eur,m\n", BadRecord, 2, "USD"),
        ("{", BadFile, None, "JSON"),
        ('{"data": [NaN]}', BadFile, None, "data[0]"),
        ("[" * 100_000, BadFile, None, "nested too deeply"),
        ('{"a": 1e' + "9" * 30 + "}", BadFile, None, "out of range"),
        ('{"a": ' + "9" * 5_000 + "}", BadFile, None, "JSON"),
        ("[1]", BadFile, None, "page"),
        ('{"a": 1}', BadFile, None, "unknown export"),
        ('{"data": []}', BadFile, None, "no bucket"),
        ('{"data": [3]}', BadFile, None, "data[0]"),
        ('{"data": [{}]}', BadFile, None, "data[0].results is missing"),
        ('{"data": [{"results": []}]}', BadFile, None, "unknown export"),
        ('\n{"error": {"message": "Incorrect API key"}}', BadFile, None, "Incorrect API key"),
        (_page(input_tokens=None), BadRecord, 1, "data[0].results[0].input_tokens: missing"),
        (_page(input_tokens=True), BadRecord, 1, "input_tokens must be a number"),
        (_page(input_tokens=[]), BadRecord, 1, "input_tokens must be a valid integer"),
        (_page(model=7), BadRecord, 1, "model must"),
        (_page(object="organization.usage.images.result"), BadRecord, 1, "images"),
        (json.dumps({"data": [BUCKET | {"results": 3}]}), BadFile, None, "results must"),
        (json.dumps({"data": [BUCKET | {"results": [3]}]}), BadFile, None, "results[0] must"),
        (
            json.dumps({"data": [{"start_time": MIDNIGHT, "end_time": SECOND + 1, "results": []}]}),
            BadRecord,
            1,
            "one UTC day",
        ),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_is_no_export_is_told_with_its_place(
    tmp_path: Path, text: str, kind: type[InputError], line: int | None, reason: str
) -> None:
    path = written(tmp_path, "x", text)
    with pytest.raises(kind) as caught:
        list(exports.inspect(path).rows())
    assert reason in caught.value.message
    assert caught.value.details["path"] == str(path)
    assert caught.value.details["line"] == line


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"request_id": "r", "prompt_tokens": 1, "model": "gpt-5"}\nno\n', 2, "not JSON"),
        ('{"request_id": "r", "prompt_tokens": 1, "model": "gpt-5"}\n[]\n', 2, "not a JSON object"),
        ('{"request_id": null, "prompt_tokens": 1, "model": "gpt-5"}\n', 1, "no id"),
        ('{"request_id": "r", "prompt_tokens": 1.5, "model": "gpt-5"}\n', 1, "prompt_tokens must"),
        ("request_id,model,prompt_tokens\nr,gpt-5,x\n", 2, "prompt_tokens must"),
    ],
)
def test_a_bad_request_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    with pytest.raises(BadRecord, match=reason) as caught:
        list(exports.inspect(written(tmp_path, "x", text)).rows())
    assert caught.value.line == line


def test_requests_of_nobody_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="--provider"):
        exports.inspect(written(tmp_path, "x", "request_id,model,prompt_tokens\nr,m,1\n"))


def test_what_cannot_be_opened_or_decoded_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        exports.inspect(tmp_path / "none")
    path = tmp_path / "latin.csv"
    path.write_bytes(b"usage_date_utc,model\n2026-01-15,\xe9\n")
    with pytest.raises(BadFile, match="not UTF-8"):
        exports.inspect(path)
    path.write_bytes(gzip.compress(b"usage_date_utc,cost_usd\n" + b"2026-01-15,1\n" * 20)[:-9])
    with pytest.raises(BadFile):
        list(exports.inspect(path).rows())


def test_the_same_file_is_not_counted_twice(tmp_path: Path) -> None:
    content = (GOLDEN / "openai_usage.json").read_text(encoding="utf-8")
    first, second = (written(tmp_path, name, content) for name in ("a", "b"))
    with pytest.raises(BadFile, match="same content") as caught:
        exports.once([first, second])
    assert caught.value.path == str(second)


def test_rows_of_a_large_file_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    # the end of it cannot be read; whoever reads it whole before giving a row fails at once
    path = tmp_path / "large.csv"
    row = f"{MIDNIGHT},gpt-5,1,10,0,2\n".encode()
    path.write_bytes(OPENAI.encode() + row * 40_000 + b"\xff\n")
    rows: Iterator[Row] = exports.inspect(path).rows()
    assert sum(int(next(rows).figures[Measure.INPUT]) for _ in range(20_000)) == 200_000
    with pytest.raises(BadFile, match="not UTF-8"):
        for _ in rows:
            pass
