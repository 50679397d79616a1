"""Training examples of the pruner: a question, a passage, and the sentences that the answer rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.types import Call, Excerpt, Query, Retrieved, Sentence, Stage
from prompts.label import render_label
from prompts.lengths import reply_tokens

#: strategy of the calls, in the account
STRATEGY = "provence"
#: maximum sentences of a passage (section 3, *Data processing*)
LONGEST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A labelled pair of question and passage."""

    question: str
    #: of the passage; may be empty
    title: str
    #: of the passage, in order, at least one
    sentences: tuple[str, ...]
    #: places of the sentences that the answer rests on, from 0; empty: the passage has no answer
    relevant: tuple[int, ...]

    @property
    def text(self) -> str:
        """The passage's sentences, joined by spaces."""
        return " ".join(self.sentences)

    @property
    def spans(self) -> tuple[Sentence, ...]:
        """Offsets of each sentence in :attr:`text`."""
        found, at = [], 0
        for sentence in self.sentences:
            found.append(Sentence(start=at, end=at + len(sentence)))
            at += len(sentence) + 1
        return tuple(found)


def chunk(retrieved: Retrieved, *, question: str, seed: int) -> Excerpt | None:
    """Draw some consecutive sentences of a passage, so that the pruner learns from passages of any length.

    Their number is random, from 1 to 10 or to the passage's number of sentences: "N is random in 1..10, with
    a higher probability for longer contexts" (appendix A), here in proportion to N.

    Args:
        retrieved: the passage.
        question: that it was retrieved for.
        seed: equal passage, question and seed give equal sentences.

    Returns:
        ``None`` if the passage has no sentence.
    """
    most = min(len(retrieved.sentences), LONGEST)
    if not most:
        return None
    said = f"{seed}\0{question}\0{retrieved.passage.id}".encode("utf-8", "surrogatepass")
    rng = np.random.default_rng(
        int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big")
    )
    weights = np.arange(1, most + 1) / (most * (most + 1) / 2)
    size = int(rng.choice(most, p=weights)) + 1
    first = int(rng.integers(len(retrieved.sentences) - size + 1))
    return retrieved.excerpt(retrieved.sentences[first : first + size])


def label_call(
    query: Query,
    excerpt: Excerpt,
    *,
    model: str,
    max_tokens: int | None = None,
    effort: str | None = None,
) -> Call:
    """Return the call that labels some sentences of a passage.

    Args:
        query: the question.
        excerpt: the sentences.
        model: ``provider:name``.
        max_tokens: limit on output tokens; ``None``: the stage's default.
        effort: as :func:`~posology.llm.models.effort.parse_effort` takes it.
    """
    rendered = render_label(query, excerpt.passage.title, lines(excerpt))
    level = effort_of(model, Stage.LABEL, effort)
    return Call(
        stage=Stage.LABEL,
        model=model,
        query=query,
        excerpts=(excerpt,),
        messages=rendered.messages,
        prompt=rendered.prompt,
        strategy=STRATEGY,
        effort=level,
        max_tokens=reply_tokens(Stage.LABEL, max_tokens, reasoning=reasoning_tokens(model, level)),
    )


def lines(excerpt: Excerpt) -> tuple[str, ...]:
    """Return the sentences of an excerpt, each on one line."""
    return tuple(" ".join(s.of(excerpt.passage.text).split()) for s in excerpt.sentences)


def held_aside(
    examples: Sequence[Example], share: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """Split examples into a training and a held-out set, by question.

    Args:
        examples: in the order of their file.
        share: held-out share of the questions, 0 to 1.
        seed: of the split.
    """
    questions = list(dict.fromkeys(one.question for one in examples))
    rng = np.random.default_rng(seed)
    aside = set(rng.permutation(len(questions))[: int(share * len(questions))].tolist())
    chosen = {question for i, question in enumerate(questions) if i in aside}
    return (
        [one for one in examples if one.question not in chosen],
        [one for one in examples if one.question in chosen],
    )


def cleaned(example: Example) -> Example:
    """Put every sentence on one line and sort the relevant places.

    Raises:
        ValueError: there is no sentence, an empty one, or a place out of range.
    """
    sentences = tuple(" ".join(one.split()) for one in example.sentences)
    if not sentences or not all(sentences):
        raise ValueError("sentences must not be empty")
    relevant = tuple(sorted(set(example.relevant)))
    if relevant and not 0 <= relevant[0] <= relevant[-1] < len(sentences):
        raise ValueError(
            f"relevant must be places from 0 to {len(sentences) - 1} (got {list(relevant)})"
        )
    return replace(example, sentences=sentences, relevant=relevant)
