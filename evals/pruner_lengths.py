"""One pruner for passages of all lengths: the articles kept aside, cut anew.

``python -m evals.pruner_lengths [--data DIR] [--work DIR]``. Provence's test (figure 3, right): the paragraphs of
every SQuAD article that is kept aside are joined and cut into passages of 2, 6 and 10 sentences and of about
100 words; beside them, the paragraphs as they are. Of each question: the passage with its answer, and the four
others that dense and BM25 fused rank best among the passages of the same length of those articles. That is
harder than :mod:`evals.pruner`, whose distractors come from all articles.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.pooled import WORK
from evals.pruner import by, table
from evals.pruner_bank import encode
from evals.pruner_data import DISTRACTORS, SQUAD, Case, Texts, Words, fused, parts, rows
from evals.pruner_score import observed
from evals.pruner_train import Corpus, coded
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.text.sentences import split
from posology.types import Sentence
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.head import Head

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: name → most sentences and least words of a passage; ``None``: paragraphs as they are
LENGTHS: dict[str, tuple[int, int] | None] = {
    "2 sentences": (2, 10_000),
    "6 sentences": (6, 10_000),
    "10 sentences": (10, 10_000),
    "100 words": (10_000, 100),
    "paragraphs": None,
}


def corpus(data: Path, work: Path, name: str, embedder: SentenceTransformerEmbedder) -> Corpus:
    """The passages of one length with the questions of the articles aside."""
    found = rows(data / SQUAD)
    part = parts(dict(Counter(row["title"] for row in found)))
    texts = Texts()
    wanted: list[tuple[str, int, int]] = []
    for title in part:
        if part[title] == "test":
            wanted += _cut([row for row in found if row["title"] == title], LENGTHS[name], texts)
    bank = encode(texts, embedder, work, f"lengths-{name.replace(' ', '-')}")
    questions = list(dict.fromkeys(question for question, _, _ in wanted))
    whole = embedder.embed_queries(questions)
    asked = dict(
        zip(questions, zip(embedder.token_vectors(questions), whole, strict=True), strict=True)
    )
    words = Words(heading(p) + p.text for p in texts.passages)
    vectors = bank.vectors.astype(np.float32)
    cases = [_case(*one, asked[one[0]][1], vectors, words) for one in wanted]
    return Corpus(texts=texts, cases=cases, bank=bank, asked=asked)


def _cut(
    paragraphs: Sequence[dict[str, Any]], length: tuple[int, int] | None, texts: Texts
) -> Iterator[tuple[str, int, int]]:
    """Adds an article's passages: its questions, each with the passage and the sentence of its answer."""
    title = paragraphs[0]["title"].replace("_", " ")
    joined = [" ".join(row["context"] for row in paragraphs)] if length else []
    offset, placed = 0, []
    for row in paragraphs:
        if length is None:
            joined.append(row["context"])
        placed.append((0, len(joined) - 1) if length is None else (offset, 0))
        offset += len(row["context"]) + 1
    where = [list(_passages(text, length, title, texts)) for text in joined]
    for row, (begin, of) in zip(paragraphs, placed, strict=True):
        for qa in row["qas"]:
            votes = Counter(
                place
                for answer in qa["answers"]
                for place in _sentences(where[of], begin + answer["answer_start"], texts)
            )
            if votes:
                (passage, sentence), _ = votes.most_common(1)[0]
                yield qa["question"], passage, sentence


def _passages(
    text: str, length: tuple[int, int] | None, title: str, texts: Texts
) -> Iterator[tuple[int, int, int]]:
    """Each passage's number, start and end."""
    held: list[Sentence] = []
    sentences = split(text)
    for i, sentence in enumerate(sentences):
        held.append(sentence)
        full = length is not None and (
            len(held) >= length[0] or len(text[held[0].start : sentence.end].split()) >= length[1]
        )
        if full or i + 1 == len(sentences):
            start, end = held[0].start, sentence.end
            yield texts.add(title, text[start:end]), start, end
            held = []


def _sentences(
    passages: Sequence[tuple[int, int, int]], place: int, texts: Texts
) -> Iterator[tuple[int, int]]:
    """Passage and sentence that a place is in: one, or none between two."""
    for number, start, _ in passages:
        for i, sentence in enumerate(texts.sentences[number]):
            if sentence.start <= place - start < sentence.end:
                yield number, i


def _case(
    question: str,
    passage: int,
    sentence: int,
    vector: NDArray[np.float32],
    vectors: NDArray[np.float32],
    words: Words,
) -> Case:
    dense, bm25 = vectors @ vector, words.scores(question)
    dense[passage], bm25[passage] = -1, 0
    others = [i for i in fused([dense, bm25]) if i != passage][:DISTRACTORS]
    return Case(
        origin="squad",
        part="test",
        question=question,
        passages=(passage, *others),
        gold=(frozenset({sentence}), *(frozenset[int]() for _ in others)),
        kinds=("gold", *("hard" for _ in others)),
    )


def main() -> None:
    """Print a table for each length."""
    parser = argparse.ArgumentParser(
        prog="evals.pruner_lengths",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "pruner")
    given = parser.parse_args()
    codec, head, embedder = LateCodec.packaged(), Head.packaged(), load(None)
    print(f"codec {codec.name}, head {head.version}, threshold {head.threshold:.3f}")
    for name in LENGTHS:
        found = corpus(given.data, given.work, name, embedder)
        codes = coded(found.bank, codec)
        records = [observed(case, found, codes, codec, head.weights) for case in found.cases]
        sizes = np.diff(found.bank.first)
        print(
            f"{name}: {len(records)} questions, {len(sizes)} passages of {np.mean(sizes):.0f} tokens",
            flush=True,
        )
        table("cosine", records, by("cosine", "cosine_passage"), None)
        table("pruner", records, head, head.threshold)


if __name__ == "__main__":
    main()
