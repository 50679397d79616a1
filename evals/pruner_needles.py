"""Needles of our own in abstracts: are they kept, wherever they stand, and what is kept besides?

``python -m evals.pruner_needles [--data DIR] [--passages N] [--figure FILE]``. Provence's test (figure 3, left):
five questions and their answers, of one and of two sentences, are put between the sentences of abstracts that
have nothing to do with them: before the first, behind the last, and at three places between. One passage at a
time, at the shipped threshold. What is encoded is kept in the folder of work.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evals.pooled import WORK, interval
from evals.pruner_data import POOL, rows
from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Encoded, EncodedQuery, Passage, Ranking, Retrieval, Retrieved
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.pruner import Pruner

#: question; its answer in one sentence; and in two
NEEDLES = (
    (
        "Which drug was given against the altitude headache?",
        "The climbers were given ibuprofen against the altitude headache.",
        "Against the altitude headache the climbers were given a drug. It was ibuprofen.",
    ),
    (
        "How many nurses took part in the handwashing survey?",
        "The handwashing survey was answered by 214 nurses.",
        "Nurses took part in a survey on handwashing. There were 214 of them.",
    ),
    (
        "Who designed the folding wheelchair?",
        "The folding wheelchair was designed by Marta Lindqvist.",
        "The folding wheelchair had one designer. Her name was Marta Lindqvist.",
    ),
    (
        "Does green tea shorten the healing of burns?",
        "Green tea did not shorten the healing of burns.",
        "The healing of burns was compared with and without green tea. It took as long with the tea.",
    ),
    (
        "When was the vaccination ward of Tromsø opened?",
        "The vaccination ward of Tromsø was opened in March 1957.",
        "Tromsø has a vaccination ward. It was opened in March 1957.",
    ),
)
#: where a needle stands, as a share of the passage's sentences that are before it
PLACES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: sentences, and most characters, of the abstracts
SENTENCES, MOST = range(5, 9), 1_300
_NONE = Ranking(method="dense", hits=())


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What the pruner left of a passage with a needle."""

    #: number of :data:`NEEDLES`, and of :data:`PLACES`
    needle: int
    place: int
    #: which of the needle's sentences were kept
    kept: tuple[bool, ...]
    #: other sentences that were kept
    besides: int


def mixed(hay: Passage, needle: str, place: float) -> Passage:
    """The passage with a needle in it."""
    sentences = [s.of(hay.text) for s in split(hay.text)]
    n = round(place * len(sentences))
    text = " ".join([*sentences[:n], needle, *sentences[n:]])
    return Passage(id=hay.id, title=hay.title, text=text)


def encoded(
    passages: Sequence[Passage],
    embedder: SentenceTransformerEmbedder,
    codec: LateCodec,
    work: Path,
) -> list[Encoded]:
    """As ingest encodes them, or as read from the folder of work."""
    name = "\n".join([codec.name, *(f"{p.title}\n{p.text}" for p in passages)])
    file = work / f"needles-{hashlib.sha256(name.encode()).hexdigest()[:16]}.pkl"
    if not file.exists():
        made = embedder.embed_passages(passages, [split(p.text) for p in passages], codec)
        file.write_bytes(pickle.dumps(made))
    found: list[Encoded] = pickle.loads(file.read_bytes())  # noqa: S301 - written above
    return found


def retrieval(
    passage: Passage, one: Encoded, question: str, asked: EncodedQuery, codec: LateCodec
) -> Retrieval:
    """One passage, as an index with token codes gives it."""
    found = Retrieved(
        passage=passage,
        sentences=split(passage.text),
        vector=one.vector,
        sentence_vectors=np.round(one.sentence_vectors * 127).astype(np.int8),
        tokens=one.tokens,
    )
    return Retrieval(
        query=make_query(question),
        passages=(found,),
        query_vector=asked.vector,
        dense=_NONE,
        bm25_rerank=_NONE,
        bm25=_NONE,
        fused=_NONE,
        index_version="none",
        query_tokens=asked.tokens,
        codec=codec.name,
    )


def measured(
    length: int,
    hay: Sequence[Passage],
    embedder: SentenceTransformerEmbedder,
    work: Path,
) -> list[Found]:
    """What is left of all passages with all needles of one or two sentences at all places."""
    codec, pruner, found = LateCodec.packaged(), Pruner(), []
    for number, (question, *answers) in enumerate(NEEDLES):
        needle = answers[length - 1]
        parts = [s.of(needle) for s in split(needle)]
        asked = embedder.encode_query(question)
        places = [(k, p) for k in range(len(PLACES)) for p in hay]
        passages = [mixed(p, needle, PLACES[k]) for k, p in places]
        for (k, _), passage, one in zip(
            places, passages, encoded(passages, embedder, codec, work), strict=True
        ):
            left = pruner(retrieval(passage, one, question, asked, codec), None)
            shown = [s.of(passage.text) for e in left.excerpts for s in e.sentences]
            found.append(
                Found(
                    needle=number,
                    place=k,
                    # a needle behind an abstract that ends without a full stop is of its last sentence
                    kept=tuple(any(part in text for text in shown) for part in parts),
                    besides=sum(not any(part in text for part in parts) for text in shown),
                )
            )
    return found


def draw(found: dict[int, list[Found]], file: Path) -> None:
    """Share of the needle that is kept, and sentences that are kept, by place."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
    for length, of in found.items():
        at = [[one for one in of if one.place == k] for k in range(len(PLACES))]
        shares = [np.array([np.mean(one.kept) for one in some]) for some in at]
        kept = [np.array([sum(one.kept) + one.besides for one in some]) for some in at]
        label = "one sentence" if length == 1 else "two sentences"
        for axes, values in ((left, shares), (right, kept)):
            means = np.array([v.mean() for v in values])
            bounds = np.array([interval(v) for v in values])
            axes.errorbar(
                np.array(PLACES) + 0.01 * (length - 1),
                means,
                yerr=np.abs(bounds.T - means),
                marker="o",
                capsize=2,
                label=label,
            )
    left.set_ylabel("share of the needle kept")
    left.set_ylim(0, 1.05)
    right.set_ylabel("sentences kept")
    right.set_ylim(0)
    for axes in (left, right):
        axes.set_xlabel("place of the needle in the passage")
    left.legend(frameon=False, loc="lower left")
    figure.tight_layout()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=140)


def main() -> None:
    """Print the share of needles that are kept, and how much besides; draw it."""
    parser = argparse.ArgumentParser(prog="evals.pruner_needles", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "pruner")
    parser.add_argument("--passages", type=int, default=20, help="abstracts for each needle")
    parser.add_argument("--figure", type=Path, help="where the figure is written; default: nowhere")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    embedder = load(None)
    pool = [r for r in rows(given.data / POOL) if r.get("title") and len(r["text"]) <= MOST]
    random.Random(0).shuffle(pool)
    fitting = (r for r in pool if len(split(r["text"])) in SENTENCES)
    hay = [
        Passage(id=row["id"], title=row["title"], text=row["text"])
        for row, _ in zip(fitting, range(given.passages), strict=False)
    ]
    found: dict[int, list[Found]] = {}
    for length in (1, 2):
        of = found[length] = measured(length, hay, embedder, given.work)
        print(f"{length} sentences, {len(NEEDLES)} needles in {len(hay)} abstracts each")
        for k, place in enumerate(PLACES):
            at = [one for one in of if one.place == k]
            print(
                f"  at {place:.2f}: kept {np.mean([one.kept for one in at]):.3f} of {len(at)},"
                f" other sentences kept {np.mean([one.besides for one in at]):.2f}"
            )
        for n in range(len(NEEDLES)):
            shares = np.mean([one.kept for one in of if one.needle == n], axis=0)
            print(f"  needle {n}, by sentence:", " ".join(f"{s:.2f}" for s in shares), flush=True)
    if given.figure is not None:
        draw(found, given.figure)


if __name__ == "__main__":
    main()
