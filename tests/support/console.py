"""Jobs as the console shows them: an answer with everything, and texts that attack a page."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from posology.published.answers import (
    AskOutput,
    DifferenceOutput,
    Disagreement,
    Evidence,
    Position,
    Ranked,
    SentenceSupportOutput,
    Source,
    Status,
    SupportOutput,
)
from posology.published.calls import Spending
from posology.published.decisions import DecisionOutput
from posology.store import keys
from posology.types import (
    Backing,
    Decision,
    Dose,
    FaultyQuote,
    Flag,
    Form,
    Level,
    Outcome,
    QuoteFault,
    Resolution,
    Rule,
    SentenceRole,
    Usage,
)
from posology.types.flags import FlagKind
from tests.integration.jobs_store.helpers import MODEL, completion, ended, opening
from workers.engine.claims import WorkStore
from workers.engine.journal import JobJournal
from workers.engine.units import Unit

#: markup, an escape sequence, an override of the reading direction, zero-width characters, and a word without end
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> \"'><a href=javascript:alert(1)>x</a> {{ 7*7 }} "
    "\x1b[31mred \u202egnp.exe \u200bzero\u200d \ufeff\U000e0041 " + "long" * 200
)
QUESTION = "Does low-dose aspirin reduce the risk of preeclampsia?"
QUOTE = "Aspirin reduced the risk of preeclampsia (RR 0.62, 95% CI 0.45 to 0.87)."
TEXT = (
    "OBJECTIVE: To find out whether low-dose aspirin, begun before 16 weeks, prevents preeclampsia. METHODS: We "
    "randomised 1,620 women at high risk to 150 mg of aspirin or placebo each evening until 36 weeks. RESULTS: "
    f"{QUOTE} Birth weights did not differ. CONCLUSION: Women at high risk benefit from aspirin at 150 mg."
)


def source(name: str, title: str, **more: object) -> Source:
    """A passage's article."""
    given: dict[str, object] = {
        "journal": "J Obstet", "year": 2017, "publication_types": ("Randomized Controlled Trial",),
        "retracted": False, "source": "pubmed", "pmid": name.removeprefix("pmid:"),
    }  # fmt: skip
    return Source.model_validate({"id": name, "title": title, **given, **more})


def answered(extra: str = "") -> AskOutput:
    """An answer with quotes, a conflict, a retraction and a dropped quote; each text ends with ``extra``."""
    trial = source("pmid:28657417", f"Aspirin versus placebo in women at high risk{extra}")
    old = source(
        "pmid:11111111",
        f"No benefit of aspirin in an unselected population{extra}",
        year=1994,
        retracted=True,
        publication_types=("Cohort Study",),
        flags=(Flag(kind=FlagKind.RETRACTION, source="record", by=None, date="2020-05-01"),),
    )
    start = TEXT.index(QUOTE)
    text = f"Low-dose aspirin reduces the risk in women at high risk [pmid:28657417].{extra} It works in all women."
    end = text.index(" It works")
    return AskOutput(
        status=Status.ANSWERED,
        question=QUESTION + extra,
        form=Form.FREE,
        model=MODEL,
        answer=text,
        choice=None,
        refusal=None,
        evidence=(
            Evidence(
                passage=trial,
                start=start,
                end=start + len(QUOTE),
                quote=QUOTE,
                context_start=0,
                context=TEXT + extra,
                role=SentenceRole.RESULTS,
            ),
        ),
        dropped_quotes=1,
        faulty_quotes=(
            FaultyQuote(
                fault=QuoteFault.INVENTED,
                quote=f"Aspirin halves the risk in all women.{extra}",
                named="pmid:28657417",
                passages=(),
            ),
        ),
        support=SupportOutput(
            judge="pruner",
            sentences=(
                SentenceSupportOutput(
                    start=0, end=end, backing=Backing.SUPPORTED, probability=0.97, evidence=(0,),
                    failed=(), disagrees=False,
                ),
                SentenceSupportOutput(
                    start=end + 1, end=len(text), backing=Backing.UNSUPPORTED, probability=0.08, evidence=(0,),
                    failed=(Rule.NUMBER,), disagrees=False,
                    differences=(
                        DifferenceOutput(
                            rule=Rule.NUMBER, said="21 %", quoted="12 %", words="the quote says 12 %, the sentence 21 %"
                        ),
                    ),
                ),
            ),
            unsupported=1,
            removed=0,
        ),
        notes=(f"One source is an editorial.{extra}",),
        conflicts=(
            Disagreement(
                claim=f"Aspirin reduces the risk of preeclampsia.{extra}",
                supporting=(Position(passage=trial, level=Level.TRIAL, quotes=(QUOTE + extra,)),),
                opposing=(
                    Position(passage=old, level=Level.COHORT, quotes=(f"Aspirin made no difference.{extra}",)),
                ),
                resolution=Resolution.SUPPORTING,
                how="a trial carries further than a cohort",
            ),
        ),
        coverage=None,
        shown=0.62,
        strategy="direct",
        decision=DecisionOutput.of(_DECISION),
        spending=Spending(
            attempts=(), usage=Usage(), usage_complete=True, cost_usd=Decimal(0), charged_usd=Decimal(0)
        ),
        retrieved=tuple(
            Ranked(
                passage=one, dense=place, bm25=3 - place, fused=place, dense_score=0.7, bm25_score=12.0, fused_score=0.03
            )
            for place, one in enumerate((trial, old), 1)
        ),
        index="sample@17",
        retrieval_seconds=0.03,
        seconds=2.4,
    )  # fmt: skip


_DECISION = Decision(
    dose=Dose(strategy="direct", passages=1),
    policy="router",
    reason="The dense and the BM25 ranking agree on the top 3.",
    features={"preflight.iou": 0.5, "remaining": 4.2},
    steps=("Dense and BM25 rankings share 2 of their top 3 (IoU 0.50 > 0.20).", "direct fits the budget."),
    versions={"policy": "router", "prompts": "0000000000000000"},
)  # fmt: skip


def make_index(folder: Path, embedder: str, *, hostile: bool = True) -> Path:
    """Make an index with the passage that the answers quote, and by default a hostile one; return its folder."""
    rows = [
        {"id": "pmid:28657417", "text": TEXT, "title": "Aspirin versus placebo in women at high risk", "year": 2017,
         "publication_types": ["Randomized Controlled Trial"]},
        {"id": "pmid:11111111", "text": "Aspirin made no difference.", "title": "No benefit", "retracted": True},
        {"id": "x/\"'<b>é", "text": HOSTILE, "title": HOSTILE, "publication_types": [HOSTILE]},
    ]  # fmt: skip
    file = folder / "rows.jsonl"
    file.write_text(
        "".join(f"{json.dumps(row)}\n" for row in rows[: 3 if hostile else 2]), encoding="utf-8"
    )
    run_ingest([file], Settings(), Target(place=str(folder / "sample"), embedder=embedder))
    return folder / "sample"


async def run_job(
    store: JobStore,
    tenant: str,
    *,
    question: str = QUESTION,
    out: AskOutput | None = None,
    decision: Decision | None = None,
) -> str:
    """Submit a job and answer it, as a worker does; without an answer it is running."""
    job, succeed = await run_job_held(store, tenant, question=question, decision=decision)
    if out is not None:
        await succeed(out)
    return job


async def run_job_held(
    store: JobStore, tenant: str, *, question: str = QUESTION, decision: Decision | None = None
) -> tuple[str, Callable[[AskOutput], Awaitable[None]]]:
    """Submit a job and begin it: one attempt is paid for and lost, and the next succeeds. Return what ends it."""
    asked = JobRequest(question=question, model=MODEL, max_tokens=500, deadline_seconds=3_600)
    job = (await store.submit(asked, tenant=tenant)).job
    work = WorkStore(store, worker=keys.worker(1))
    while await work.take(tenant) is not None:
        pass
    unit = Unit(tenant=tenant, job=job, name="answer")
    held = await work.claim(unit, delivery=keys.new_id("delivery"))
    assert held is not None
    await work.decide(held, decision or _DECISION, calls=1)
    journal, now = JobJournal(work, held), time.time()
    for number, outcome in ((1, Outcome.LOST), (2, Outcome.OK)):
        opened = replace(
            opening(held, f"{job}-{number}", key=f"k{number}"), attempt=number, started=now + number
        )
        await journal.open(opened)
        cost = Decimal("0.001") if outcome is Outcome.OK else None
        done = replace(ended(opened, outcome, cost), attempt=number, latency=0.4 + 0.5 * number)
        await journal.close(done, completion() if outcome is Outcome.OK else None)

    async def succeed(out: AskOutput) -> None:
        await work.succeed(held, out)

    return job, succeed
