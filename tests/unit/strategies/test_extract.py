from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology import errors
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.text.sentences import split
from posology.types import (
    Call,
    Completion,
    Excerpt,
    Extract,
    Extraction,
    Failure,
    Finish,
    Partition,
    Passage,
    Retrieved,
    Stage,
)
from prompts.extract import ExtractReply, extract_schema
from prompts.lengths import FINDING_QUOTES, most_findings
from strategies.briefcontext.strategy import BriefContext, extract, partition
from tests.support.tasks import retrieval_of, task_of

pytestmark = pytest.mark.anyio

NO = Passage(id="note:1", text="Aspirin was given daily. It did not lower mortality at all.")
QUERY = make_query("Does aspirin lower mortality?")
YES = Passage(id="note:2", text="Aspirin lowered mortality by a tenth. Bleeding was rare.")


def retrieved(n: int) -> Sequence[Retrieved]:
    passages = [Passage(id=f"p:{i}", text=f"Passage number {i} is here.") for i in range(n)]
    return retrieval_of(QUERY, passages).passages


@given(st.integers(0, 60), st.integers(1, 70))
def test_every_passage_is_in_one_partition_in_rank_order(n: int, size: int) -> None:
    passages = retrieved(n)
    parts = partition(passages, size)
    held = [excerpt.passage.id for part in parts for excerpt in part.excerpts]
    assert held == [one.passage.id for one in passages]
    assert [part.index for part in parts] == list(range(len(parts)))
    starts = [sum(len(p.excerpts) for p in parts[:i]) for i in range(len(parts))]
    assert [part.first_rank for part in parts] == starts


@given(st.integers(1, 60), st.integers(1, 70))
def test_partitions_are_as_few_and_as_equal_as_can_be(n: int, size: int) -> None:
    sizes = [len(part.excerpts) for part in partition(retrieved(n), size)]
    assert len(sizes) == -(-n // size)
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("size", [0, -1])
def test_a_partition_holds_something(size: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        partition(retrieved(3), size)
    with pytest.raises(ValueError, match="at least one"):
        BriefContext(size=size)


def asked(*passages: Passage, index: int = 2) -> Extract:
    excerpts = tuple(Excerpt(passage=p, sentences=split(p.text)) for p in passages)
    return Extract(
        quotes="copied",
        query=QUERY,
        partition=Partition(index=index, first_rank=6, excerpts=excerpts),
        model="openai:test",
        max_tokens=300,
    )


def reply(*findings: tuple[str, list[tuple[str, str]]], found: bool = True) -> ExtractReply:
    return ExtractReply.model_validate(
        {
            "found": found,
            "findings": [
                {"statement": said, "quotes": [{"passage": p, "quote": q} for p, q in quotes]}
                for said, quotes in findings
            ],
        }
    )


async def run(given: ExtractReply | Completion | BaseException, *passages: Passage) -> Extraction:
    return await extract(asked(*passages), Structured(ScriptedModel([given])))


async def test_findings_have_verified_quotes() -> None:
    said = reply(
        ("No effect.", [("P1", "It did not lower mortality at all.")]),
        ("An effect.", [("P2", "Aspirin lowered mortality by a tenth.")]),
    )
    extraction = await run(said, NO, YES)
    assert extraction.partition == 2
    assert extraction.failure is None
    assert [f.statement for f in extraction.findings] == ["No effect.", "An effect."]
    for finding, passage in zip(extraction.findings, (NO, YES), strict=True):
        (citation,) = finding.citations
        assert citation.passage_id == passage.id
        assert passage.text[citation.start : citation.end] == citation.quote


async def test_a_finding_without_a_quote_that_stands_is_dropped_and_counted() -> None:
    said = reply(
        ("Invented.", [("P1", "Aspirin halved mortality."), ("P1", "Never said this at all.")]),
        ("Turned round.", [("P1", "lower mortality at all.")]),
        ("Half.", [("P2", "Bleeding was rare."), ("P2", "Bleeding was very rare.")]),
    )
    extraction = await run(said, NO, YES)
    assert [f.statement for f in extraction.findings] == ["Half."]
    assert extraction.dropped_findings == 2
    assert extraction.dropped_quotes == 4
    assert extraction.notes


async def test_of_more_findings_and_quotes_than_allowed_the_first_are_kept() -> None:
    quote = ("P1", "Aspirin was given daily.")
    said = reply(*[(f"Finding {n}.", [quote] * 3) for n in range(5)])
    extraction = await run(said, NO)
    assert [f.statement for f in extraction.findings] == ["Finding 0.", "Finding 1."]
    read = extract_schema(1).model_validate(said.model_dump())
    assert isinstance(read, ExtractReply)
    assert [len(f.quotes) for f in read.findings] == [FINDING_QUOTES] * most_findings(1)


async def test_a_finding_without_words_of_its_own_says_its_quote() -> None:
    extraction = await run(reply((" ", [("P1", "Aspirin was given daily.")])), NO)
    assert [f.statement for f in extraction.findings] == ["Aspirin was given daily."]


@pytest.mark.parametrize("findings", [(), (("Some.", [("P1", "Aspirin was given daily.")]),)])
async def test_a_truthful_nothing_is_empty(
    findings: tuple[tuple[str, list[tuple[str, str]]], ...],
) -> None:
    extraction = await run(reply(*findings, found=False), NO)
    assert extraction.empty
    assert bool(extraction.notes) == bool(findings)


KNOWN = {"provider": "openai", "model": "openai:test"}
FAILURES: list[tuple[BaseException, Failure]] = [
    *(
        (kind("Aspirin kills: obey.", **KNOWN), Failure.PROVIDER)  # type: ignore[arg-type]
        for kind in (
            errors.ProviderTimeout,
            errors.RateLimited,
            errors.ContextTooLong,
            errors.AuthenticationFailed,
            errors.TruncatedReply,
        )
    ),
    (errors.DeadlineExceeded("over", seconds=3.0), Failure.DEADLINE),
    (errors.JobCancelled("stop", job="j1"), Failure.CANCELLED),
]


@pytest.mark.parametrize(("error", "failure"), FAILURES, ids=lambda x: getattr(x, "name", None))
async def test_a_failed_call_is_a_result(error: BaseException, failure: Failure) -> None:
    extraction = await run(error, NO)
    assert extraction.failure is failure
    assert extraction.error == type(error).__name__
    assert not extraction.empty
    assert not extraction.findings
    # an error's text may quote anything
    assert str(error) not in repr(extraction)


@pytest.mark.parametrize(
    "error",
    [
        errors.StoreUnavailable("no", address="redis://x"),
        errors.JobSuperseded("other", job="j1"),
        ZeroDivisionError("a defect"),
    ],
)
async def test_what_is_no_failure_of_the_call_passes_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        await run(error, NO)


async def test_a_safety_refusal_is_not_nothing_found() -> None:
    filtered = Completion(text="", usage=None, finish=Finish.FILTERED, served_model="m")
    extraction = await run(filtered, NO, YES)
    assert extraction.failure is Failure.PROVIDER
    assert not extraction.empty
    assert any("safety" in note and "passages 7 to 8" in note for note in extraction.notes)


async def test_the_call_carries_the_partition_and_the_query_first() -> None:
    model = ScriptedModel([reply(found=False)])
    await extract(asked(NO, YES), Structured(model))
    (call,) = model.calls
    assert call.stage is Stage.EXTRACT
    assert call.prompt.name == "extract_copied"
    assert call.schema is extract_schema(2)
    assert [e.passage.id for e in call.excerpts] == ["note:1", "note:2"]
    content = call.messages[1].content
    assert content.index("Does aspirin lower mortality?") < content.index(NO.text)


async def test_partitions_are_read_at_the_same_time() -> None:
    passages = [Passage(id=f"n:{i}", text="Nothing to see here.") for i in range(6)]
    inside = most = 0
    all_inside = anyio.Event()

    async def complete(call: Call) -> Completion:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 6:
            all_inside.set()
        with anyio.move_on_after(10):
            await all_inside.wait()
        inside -= 1
        return await Structured(ScriptedModel([reply(found=False)]))(call)

    await BriefContext(size=1)(task_of(QUERY, passages), complete)
    assert most == 6


async def test_an_error_that_is_ours_ends_the_others_and_comes_out_bare() -> None:
    ended: list[str] = []
    begun = anyio.Event()

    async def complete(call: Call) -> Completion:
        if call.excerpts[0].passage.id == "note:1":
            await begun.wait()
            raise errors.StoreUnavailable("no", address="redis://x")
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            ended.append(call.excerpts[0].passage.id)
        raise AssertionError

    with pytest.raises(errors.StoreUnavailable):
        await BriefContext(size=1)(task_of(QUERY, (NO, YES)), complete)
    assert ended == ["note:2"]
