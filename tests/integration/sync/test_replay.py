"""Answers and decisions made on a version of an index, after syncs have replaced it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from orchestrator.question.decider import Decider
from orchestrator.question.decisions.forms import Replay, ReplayedJob
from orchestrator.question.decisions.replay import Present, Replayer
from orchestrator.question.pipeline import Pipeline
from orchestrator.question.report import ask_output
from orchestrator.question.request import JobRequest, Request
from orchestrator.settings import Settings
from posology.budget.prices.book import packaged
from posology.errors import VersionGone
from posology.index import versions
from posology.index.build.rows import RowSource
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.index.sync.sync import sync
from posology.llm.accounting import Account
from posology.llm.stack import build
from posology.published.answers import AskOutput
from posology.published.decisions import DecisionOutput
from posology.published.jobs import JobOutput
from posology.query import make_query
from posology.testing import ScriptedModel, by_bytes
from posology.testing.models.embedder import HashEmbedder
from posology.types import Call, Query, Retrieval
from prompts.answer import AnswerReply, Quote
from tests.support.pubmed_files import write
from tests.support.replies import in_form
from tests.support.sync import citations

if TYPE_CHECKING:
    from orchestrator.service import Service
    from posology.testing.model import ScriptedReply


@pytest.mark.anyio
async def test_an_answer_made_on_a_version_is_reproduced_after_five_syncs(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    text = "Heparin lowers the risk of thrombosis"
    write(folder, 1, citations(*range(1, 30), text=f"{text}."))
    sync(folder, index, RowSource(embedder=embedder))
    query = make_query("Does heparin lower the risk of thrombosis?")
    asked = Request(query=query, model="offline:extractive", k=5, policy="doubling")
    first = ask_output(await _pipeline(index, embedder).run(asked, Account(), tenant="any"))
    for number in range(2, 7):
        again = range(number, 30, 3)
        write(
            folder, number, citations(*again, text=f"{text} {number} times."), deleted=[number - 1]
        )
        sync(folder, index, RowSource(embedder=embedder))

    later = _pipeline(Index.open(index.uri), embedder)
    newest = ask_output(await later.run(asked, Account(), tenant="any"))
    number = int(first.index.rpartition("@")[2])
    old = replace(asked, index_version=number)
    same = ask_output(await later.run(old, Account(), tenant="any"))
    assert _told(same) == _told(first)
    assert _told(newest) != _told(first)
    # a job that is taken up again stands on the version that its decision names
    decided = (await _pipeline(index, embedder).prepare(old)).decision
    assert decided.versions["index"] == first.index
    resumed = await later.prepare(asked, decided=decided)
    assert resumed.retrieval.index_version == first.index
    replayed = await later.prepare(asked)
    assert replayed.retrieval.index_version == newest.index != first.index
    with pytest.raises(VersionGone):
        await later.prepare(replace(asked, index_version=number + 1))


def _pipeline(index: Index, embedder: HashEmbedder) -> Pipeline:
    def quotes(call: Call) -> ScriptedReply:
        read = [excerpt.sentences[0].of(excerpt.passage.text) for excerpt in call.excerpts]
        said = AnswerReply(
            answerable=True,
            answer=" ".join(read),
            choice=None,
            quotes=[Quote(passage=f"P{i}", quote=quote) for i, quote in enumerate(read, start=1)],
        )
        return in_form(call, said)

    return Pipeline(
        retriever=Retriever(index, embedder),
        decider=Decider(default="doubling"),
        completes=lambda _, account, *_caller: build(
            ScriptedModel(quotes), journal=account, prices=packaged(), bound=by_bytes
        ),
    )


def _told(out: AskOutput) -> dict[str, Any]:
    """What is no matter of the clock."""
    return out.model_dump(exclude={"spending", "retrieval_seconds", "seconds"})


@pytest.mark.anyio
async def test_a_decision_is_replayed_from_the_version_that_it_names(
    folder: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, 1, citations(*range(1, 30), text="Heparin lowers the risk."))
    sync(folder, index, RowSource(embedder=embedder))
    sent = JobRequest(
        question="Does heparin lower the risk?", k=5, policy="router:preflight=published"
    ).settled(Settings())
    made = await _pipeline(index, embedder).prepare(sent.as_settled())
    job = JobOutput.model_construct(
        id="job_1",
        tenant="t",
        decision=DecisionOutput.of(made.decision),
        request=sent.model_dump(mode="json"),
    )
    write(folder, 2, citations(40, text="Heparin lowers the risk of risk."), deleted=[1, 2, 3])
    sync(folder, index, RowSource(embedder=embedder))

    retriever = Retriever(Index.open(index.uri), embedder)

    class Searching:
        settings = Settings()

        async def search(self, query: Query, *, spend: object = None, **how: Any) -> Retrieval:
            return await retriever.retrieve(query, **how)

    async def replayed(*, newest: bool) -> ReplayedJob:
        present = Present(
            decider=Decider(default="router"), service=cast("Service", Searching()), newest=newest
        )
        return await Replayer(present).add(job)

    same = await replayed(newest=False)
    assert same.status is Replay.SAME
    assert "index" not in {change.name for change in same.decisions[0].versions}
    assert not same.decisions[0].features
    moved = await replayed(newest=True)
    assert "index" in {change.name for change in moved.decisions[0].versions}
    monkeypatch.setattr(versions, "LEAST", timedelta(0))
    index.keep = timedelta(0)
    index.finish()
    gone = await replayed(newest=False)
    assert gone.status is Replay.FAILED
    assert gone.decisions[0].error is not None
    assert gone.decisions[0].error.type == "VersionGone"
