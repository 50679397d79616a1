"""The story of one question, in one process and without a network: also on the built wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.question.decider import Decider
from orchestrator.question.pipeline import Pipeline
from orchestrator.question.report import ask_output
from orchestrator.question.request import Request
from posology.budget.prices.book import packaged
from posology.corpus.sample import notes_file, questions
from posology.errors import ProviderOverloaded
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.published.answers import Status
from posology.query import make_query
from posology.seams import Complete
from posology.testing import ScriptedModel, by_bytes
from posology.testing.models.embedder import HashEmbedder
from posology.types import Call, Outcome
from prompts.answer import AnswerReply, Quote
from tests.support.adapters import sending
from tests.support.replies import in_form

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = [pytest.mark.anyio, pytest.mark.smoke]

QUICK = RetryPolicy(attempts=3, base=0.001, deadline=10)


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    embedder = HashEmbedder()
    index = Index.create(tmp_path_factory.mktemp("story") / "index", embedder.name, embedder.dim)
    with notes_file() as notes:
        report = ingest([notes], index, RowSource(embedder=embedder))
    assert report.bad == 0
    assert report.good >= 120
    return Retriever(index, embedder)


def pipeline(retriever: Retriever, model: Complete) -> Pipeline:
    return Pipeline(
        retriever=retriever,
        # vectors of this index are no basis for preflight
        decider=Decider(default="doubling"),
        completes=lambda _, account, *_caller: build(
            sending(model), journal=account, prices=packaged(), bound=by_bytes, retry=QUICK
        ),
    )


def quoting_first_sentence(call: Call) -> ScriptedReply:
    """What a good model does: answers with a sentence of the first passage."""
    first = call.excerpts[0]
    quote = first.sentences[0].of(first.passage.text)
    quotes = [Quote(passage="P1", quote=quote)]
    return in_form(call, AnswerReply(answerable=True, answer=quote, choice=None, quotes=quotes))


def request(text: str = "What is the dose of aspirin?", strategy: str | None = None) -> Request:
    return Request(query=make_query(text), model="offline:extractive", k=5, strategy=strategy)


async def test_a_question_becomes_an_answer_with_evidence_and_an_account(
    retriever: Retriever,
) -> None:
    account = Account()
    model = ScriptedModel(quoting_first_sentence)
    report = await pipeline(retriever, model).run(request(), account, tenant="t")
    out = ask_output(report)
    assert out.status is Status.ANSWERED
    assert len(report.retrieval.passages) == 5
    (evidence,) = out.evidence
    source = {p.passage.id: p.passage.text for p in report.retrieval.passages}
    assert source[evidence.passage.id][evidence.start : evidence.end] == evidence.quote
    assert evidence.quote in evidence.context
    assert [a.outcome for a in account.attempts] == [Outcome.OK]
    assert out.spending.cost_usd == 0
    assert out.decision.strategy == "direct"
    assert out.index == report.retrieval.index_version


async def test_no_retracted_note_is_shown_to_a_model(retriever: Retriever) -> None:
    model = ScriptedModel(quoting_first_sentence)
    for question in questions()[:10]:
        await pipeline(retriever, model).run(
            request(question.query.text, "direct"), Account(), tenant="t"
        )
    shown = [e.passage for call in model.calls for e in call.excerpts]
    assert len(shown) == 50
    assert not any(passage.retracted for passage in shown)


async def test_what_a_failed_question_spent_is_known(retriever: Retriever) -> None:
    down = ProviderOverloaded("down", provider="offline", model="offline:extractive")
    account = Account()
    with pytest.raises(ProviderOverloaded):
        await pipeline(retriever, ScriptedModel([down] * 3)).run(request(), account, tenant="t")
    assert [a.outcome for a in account.attempts] == [Outcome.FAILED] * 3


def test_the_sample_is_where_the_package_is() -> None:
    with notes_file() as notes:
        assert notes.stat().st_size > 10_000
    assert len(questions()) == 40
