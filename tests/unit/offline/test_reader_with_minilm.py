"""The reader with the encoder that ships: what the fake encoder cannot show."""

from __future__ import annotations

import json

import pytest

from posology.corpus.sample import notes_file, questions
from posology.index.embedders import load
from posology.llm.offline.choice import THRESHOLD
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.scores import SentenceScorer
from posology.llm.offline.weights import TokenWeights
from posology.text.sentences import split
from posology.types import Answer, Excerpt, Extract, Partition, Passage, Reduction, Resolution
from strategies.briefcontext.strategy import extract, reduce

TEXTS = (
    (
        "Beta-blockers were compared with placebo in 412 adults. The mean age was 61 years. "
        "Atenolol was started at 25 mg once daily. Mortality did not differ between the groups."
    ),
    "The library was founded in 1901. It holds forty thousand volumes.",
)


@pytest.fixture(scope="module")
def scorer() -> SentenceScorer:
    return SentenceScorer(load())


@pytest.fixture(scope="module")
def excerpts() -> tuple[Excerpt, ...]:
    return tuple(
        Excerpt(passage=Passage(id=f"p:{i}", text=t), sentences=split(t))
        for i, t in enumerate(TEXTS)
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What was the starting dose of atenolol?", "25 mg"),
        ("How old were the participants on average?", "61 years"),
        ("Did mortality differ between the groups?", "Mortality"),
        ("When was the library founded?", "1901"),
    ],
)
def test_the_sentence_that_answers_is_first(
    scorer: SentenceScorer, excerpts: tuple[Excerpt, ...], question: str, answer: str
) -> None:
    best = scorer(question, excerpts)[0]
    assert answer in best.sentence.of(TEXTS[best.excerpt])


@pytest.mark.parametrize(
    "question", ["Who won the chess championship in Reykjavik?", "How do volcanoes form?"]
)
def test_another_subject_is_refused(
    scorer: SentenceScorer, excerpts: tuple[Excerpt, ...], question: str
) -> None:
    assert scorer(question, excerpts)[0].score < THRESHOLD


def test_rare_pieces_weigh_more() -> None:
    encoder = load()
    (tokens,) = encoder.token_vectors(["the of warfarin"])
    weights = TokenWeights.of(encoder)(tokens.ids)
    assert weights[0] < 0.5
    assert weights[2:].min() > weights[:2].max()


@pytest.mark.anyio
async def test_a_contradiction_of_the_sample_is_settled_by_its_evidence() -> None:
    with notes_file() as path:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    texts = {row["id"]: row for row in rows}
    excerpts = tuple(
        Excerpt(
            passage=Passage(
                id=row["id"],
                title=row["title"],
                text=row["text"],
                year=row["year"],
                publication_types=tuple(row["publication_types"]),
            ),
            sentences=split(row["text"]),
        )
        for row in (texts[id_] for id_ in ("note:hf-001", "note:hf-002", "note:off-001"))
    )
    (query,) = (q.query for q in questions() if q.gold == {"note:hf-001", "note:hf-002"})
    part = Partition(index=0, first_rank=0, excerpts=excerpts)
    reader = ExtractiveReader(load(), lambda text: len(text.split()))
    extraction = await extract(
        Extract(query=query, partition=part, model=NAME, max_tokens=500), reader
    )
    outcome = await reduce(
        Reduction(
            query=query, partitions=(part,), extractions=(extraction,), model=NAME, max_tokens=500
        ),
        reader,
    )
    assert isinstance(outcome, Answer)
    (conflict,) = outcome.conflicts
    assert conflict.resolution is Resolution.SUPPORTING
    assert "note:hf-002 (systematic review, 2001) over note:hf-001 (other, 1985)" in conflict.how
