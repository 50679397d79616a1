"""What the pruner learns from: a question, a passage, and the sentences that an answer rests on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posology.types import Call, Excerpt, Query, Retrieved, Sentence, Stage
from prompts.label import render_label
from prompts.lengths import reply_tokens

#: whose calls they are, in the account
STRATEGY = "provence"
#: sentences of a passage at most (section 3, *Data processing*)
LONGEST = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One question with one passage, labelled."""

    question: str
    #: of the passage; may be empty
    title: str
    #: of the passage, in order, at least one
    sentences: tuple[str, ...]
    #: numbers of those that the answer rests on, from 0; empty: there is no answer in it
    relevant: tuple[int, ...]

    @property
    def text(self) -> str:
        """The passage's sentences, a blank between them."""
        return " ".join(self.sentences)

    @property
    def spans(self) -> tuple[Sentence, ...]:
        """Where each sentence stands in :attr:`text`."""
        found, at = [], 0
        for sentence in self.sentences:
            found.append(Sentence(start=at, end=at + len(sentence)))
            at += len(sentence) + 1
        return tuple(found)


def chunk(retrieved: Retrieved, *, question: str, seed: int) -> Excerpt | None:
    """Some consecutive sentences of a passage, so that the pruner learns from passages of any length.

    Their number is random, 1 to 10 or as many as there are; the larger the likelier: "N is random in 1..10, with
    a higher probability for longer contexts" (appendix A), here in proportion to N.

    Args:
        retrieved: the passage.
        question: that it was retrieved for.
        seed: the same passage, question and seed give the same sentences.

    Returns:
        ``None`` where the passage has no sentence.
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
    return Excerpt(passage=retrieved.passage, sentences=retrieved.sentences[first : first + size])


def label_call(
    query: Query, excerpt: Excerpt, *, model: str, max_tokens: int | None = None
) -> Call:
    """The call that labels some sentences of a passage.

    Args:
        query: the question.
        excerpt: the sentences.
        model: ``provider:name``.
        max_tokens: bound on output tokens; ``None``: the stage's own.
    """
    rendered = render_label(query, excerpt.passage.title, shown(excerpt))
    return Call(
        stage=Stage.LABEL,
        model=model,
        query=query,
        excerpts=(excerpt,),
        messages=rendered.messages,
        prompt=rendered.prompt,
        strategy=STRATEGY,
        max_tokens=reply_tokens(Stage.LABEL, max_tokens),
    )


def shown(excerpt: Excerpt) -> tuple[str, ...]:
    """The sentences of an excerpt, each on one line."""
    return tuple(" ".join(s.of(excerpt.passage.text).split()) for s in excerpt.sentences)


def held_aside(
    examples: Sequence[Example], share: float, seed: int
) -> tuple[list[Example], list[Example]]:
    """Examples to learn from, and a share of the questions, with all of theirs, to look how it went.

    Args:
        examples: in the order of their file.
        share: of the questions, 0 to 1.
        seed: of the choice.
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
    """With every sentence on one line, and what is relevant in order.

    Raises:
        ValueError: it has no sentence, an empty one, or a number that is none of a sentence.
    """
    sentences = tuple(" ".join(one.split()) for one in example.sentences)
    if not sentences or not all(sentences):
        raise ValueError("an example has at least one sentence, and none is empty")
    relevant = tuple(sorted(set(example.relevant)))
    if relevant and not 0 <= relevant[0] <= relevant[-1] < len(sentences):
        raise ValueError(f"of {len(sentences)} sentences, {list(relevant)} are not numbers from 0")
    return replace(example, sentences=sentences, relevant=relevant)
