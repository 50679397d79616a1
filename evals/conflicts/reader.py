"""A scripted reader of conflicting passages: it reads by the packaged cross-encoder and knows no gold label.

In every call it reads each text by itself and gives the answer for which the readings' probabilities sum highest. A text
is not harder to read for standing in a long context, so what is measured with it is what partitions do to answers, not
what they save of a model that is lost in the middle.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from posology.llm.offline.choice import PROBABILITY
from posology.seams import PassageReader, SupportJudge
from posology.text.numbering import name
from posology.types import Call, Excerpt, Sentence, Stage, Stance
from strategies.briefcontext.answers import agree


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """What one text answers."""

    #: place of its excerpt among those of the call, from 0
    excerpt: int
    #: the sentence that answers, and its place among those shown, from 0
    text: str
    sentence: int
    answer: str
    #: 0 to 1
    probability: float


class ScriptedReader:
    """Replies to the calls of direct RAG and of BriefContext whose partitions answer, with sentences by number.

    Args:
        reader: finds the span that answers a question.
        judge: judges what a text says of a claim, for verdicts.
    """

    def __init__(self, reader: PassageReader, judge: SupportJudge) -> None:
        self._reader = reader
        self._judge = judge

    def __call__(self, call: Call) -> str:
        """Return the reply as JSON."""
        verdict, won = bool(call.query.choices), self._won(call)
        answer = won[0].answer if won else ""
        choice = answer or None if verdict else None
        named = [(one.text, [name(one.excerpt, one.sentence)]) for one in won]
        reply: dict[str, Any]
        if call.stage is Stage.EXTRACT:
            said = [{"statement": text, "sentences": names} for text, names in named]
            reply = {"found": bool(won), "findings": said, "answer": answer, "choice": choice}
        else:
            told = [{"text": text, "sentences": names} for text, names in named]
            missing = [{"text": "The passages do not say it.", "sentences": []}]
            reply = {"answerable": bool(won), "statements": told or missing, "choice": choice}
            if call.stage is Stage.REDUCE:
                reply["short"] = answer
        return json.dumps(reply)

    def answer(self, call: Call) -> str:
        """Return the short answer that it gives to a call; empty: it refuses."""
        won = self._won(call)
        return won[0].answer if won else ""

    def _won(self, call: Call) -> list[Read]:
        read = self._verdicts if call.query.choices else self._spans
        return best(read(call.query.text, call.excerpts))

    def _spans(self, question: str, excerpts: Sequence[Excerpt]) -> list[Read]:
        """Return the span of each text that answers, if it does."""
        found = []
        for place, (excerpt, reading) in enumerate(
            zip(excerpts, self._reader.read(question, excerpts), strict=True)
        ):
            span = reading.span
            if span is None or reading.answers < PROBABILITY.threshold:
                continue
            at = _around(excerpt.sentences, span)
            text = excerpt.passage.text
            found.append(
                Read(
                    excerpt=place,
                    text=excerpt.sentences[at].of(text),
                    sentence=at,
                    answer=" ".join(span.of(text).split()),
                    probability=reading.answers,
                )
            )
        return found

    def _verdicts(self, claim: str, excerpts: Sequence[Excerpt]) -> list[Read]:
        """Return what each text says of a claim, if it says anything; by its sentence that says it clearest."""
        pairs = [
            (place, at, sentence.of(excerpt.passage.text))
            for place, excerpt in enumerate(excerpts)
            for at, sentence in enumerate(excerpt.sentences)
        ]
        judged = self._judge.judge([(claim, text) for _, _, text in pairs])
        supports, contradicts, silent = (list(Stance).index(one) for one in Stance)
        clearest: dict[int, Read] = {}
        for (place, at, text), row in zip(pairs, judged.tolist(), strict=True):
            yes = row[supports] >= row[contradicts]
            probability = max(row[supports], row[contradicts])
            if probability < row[silent]:
                continue
            one = Read(
                excerpt=place,
                text=text,
                sentence=at,
                answer="yes" if yes else "no",
                probability=probability,
            )
            if place not in clearest or clearest[place].probability < probability:
                clearest[place] = one
        return list(clearest.values())


def best(read: Sequence[Read]) -> list[Read]:
    """Return the readings of the answer for which probabilities sum highest, its most probable one first."""
    groups: list[list[Read]] = []
    for one in sorted(read, key=lambda one: -one.probability):
        same = next((found for found in groups if agree(found[0].answer, one.answer)), None)
        if same is None:
            groups.append([one])
        else:
            same.append(one)
    return max(groups, key=lambda found: sum(one.probability for one in found), default=[])


def _around(sentences: Sequence[Sentence], span: Sentence) -> int:
    return next(
        at for at, one in enumerate(sentences) if one.start <= span.start and span.end <= one.end
    )
