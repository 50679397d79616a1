"""Check of an answer: does each of its sentences say what the quotes behind it say?

Rules and a judge look at each sentence beside its quotes. A sentence that a rule objects to
(:attr:`~posology.types.Rule.objects`) is never called supported: where the judge supports it all the same, it is unclear. The
packaged judge alone never objects: what it does not support is unclear. A language model that was asked to judge does. Each
disagreement is recorded. What a sentence names and a guard refused (:mod:`strategies.citing`) is judged, too, so that a rule that
is wrong is seen; without a citation it stays unclear.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter

from posology.seams import SupportJudge
from posology.text.figures import spelt
from posology.text.languages import foreign
from posology.text.quoting.references import references
from posology.text.sentences import split
from posology.types import (
    Answer,
    Backing,
    Citation,
    Difference,
    Excerpt,
    Refusal,
    Rule,
    SentenceSupport,
    Stance,
    Statement,
    Support,
    SupportMode,
)
from strategies.compression.checked import stems
from strategies.support.inventions import Shown, invented
from strategies.support.rules import around_of, completed, failures, other_subject, repeats

#: Probabilities of support and of contradiction from which on the packaged judge's word counts: of dev claims, nine of ten
#: are then what it says (``python -m evals.support --part dev --limits``). Below, it abstains.
SUPPORTED, CONTRADICTED = 0.88, 0.81
#: share of a sentence's content words that a refused quote has, at least, to be compared with it
_ALIKE = 0.5
#: what follows if a judge whose word counts does not support a sentence
_OBJECTIONS = {
    Stance.CONTRADICTS: (Backing.CONTRADICTED, Rule.OPPOSITE),
    Stance.SILENT: (Backing.UNSUPPORTED, Rule.UNSAID),
}
_SUPPORTS, _CONTRADICTS = (list(Stance).index(one) for one in (Stance.SUPPORTS, Stance.CONTRADICTS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A sentence, and the quotes that it rests on."""

    place: Statement
    #: its citations, or else the sentences that were refused as such and speak of the same
    quotes: tuple[Citation, ...]
    differences: tuple[Difference, ...]
    #: the sentence as a judge reads it: without the ids of passages, behind its question if it says nothing alone
    claim: str
    #: what it is judged beside: the sentences of each quote, then of all; empty: nothing is to be judged
    texts: tuple[str, ...]
    #: all of them behind the title and the sentence before the first, as a language model reads them
    premise: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The word of a judge on a sentence."""

    #: ``None``: it is not sure
    stance: Stance | None
    #: that its quotes support the sentence, 0 to 1; ``None``: the judge gives none
    probability: float | None = None
    #: whether its word objects where no rule does
    believed: bool = True


def checked(
    answer: Answer,
    excerpts: Mapping[str, Excerpt],
    question: str,
    judge: Callable[[], SupportJudge | None],
) -> Answer:
    """Add the support of each sentence to an answer. Blocking.

    Args:
        answer: an answer; its text is not changed.
        excerpts: passage id to the passage with its sentences.
        question: the answered question.
        judge: returns what judges sentences beside texts, if there is anything to judge; ``None``: rules alone decide.
    """
    cases = cases_of(answer, excerpts, question)
    if cases is None:
        return unread(answer)
    asked = judge() if any(one.texts for one in cases) else None
    if asked is None:
        return supported(answer, cases, [None] * len(cases), None)
    verdicts = [None if one is None else _verdict(*one) for one in probabilities(cases, asked)]
    return supported(answer, cases, verdicts, asked.name)


def cases_of(
    answer: Answer, excerpts: Mapping[str, Excerpt], question: str
) -> tuple[Case, ...] | None:
    """Return the sentences of an answer with what they rest on; ``None``: rules do not know its language. Blocking."""
    if foreign(answer.text):
        return None
    shown = Shown.of([one.passage for one in excerpts.values()], question)
    return tuple(_case(one, answer, excerpts, shown, question) for one in statements(answer))


def unread(answer: Answer) -> Answer:
    """Return an answer in a foreign language with a remark that says so."""
    remark = f"The answer seems to be in {foreign(answer.text)}: its sentences were not checked for support."
    return replace(answer, notes=(*answer.notes, remark))


def supported(
    answer: Answer, cases: Sequence[Case], verdicts: Sequence[Verdict | None], judge: str | None
) -> Answer:
    """Return an answer with the support of its sentences.

    Args:
        answer: the answer.
        cases: its sentences.
        verdicts: on each; ``None``: it was not judged.
        judge: identity of the judge; ``None``: there was none.
    """
    sentences = tuple(_judged(case, one) for case, one in zip(cases, verdicts, strict=True))
    return replace(answer, support=Support(judge=judge, sentences=sentences))


def probabilities(cases: Sequence[Case], judge: SupportJudge) -> list[tuple[float, float] | None]:
    """Return of each sentence the probabilities that a text supports it, the best one, and that all together contradict it.

    Args:
        cases: the sentences; those that are not to be judged have none.
        judge: is asked about all at once. Blocking.
    """
    # it has seen "65 years or older" more often than "≥65 years"
    found = judge.judge([(spelt(one.claim, text), text) for one in cases for text in one.texts])
    ends = accumulate(len(one.texts) for one in cases)
    return [
        (
            float(found[end - len(one.texts) : end, _SUPPORTS].max()),
            float(found[end - 1, _CONTRADICTS]),
        )
        if one.texts
        else None
        for one, end in zip(cases, ends, strict=True)
    ]


def _verdict(supports: float, contradicts: float) -> Verdict:
    """Return what the packaged judge's probabilities say."""
    stance = None
    if supports >= SUPPORTED and supports >= contradicts:
        stance = Stance.SUPPORTS
    elif contradicts >= CONTRADICTED:
        stance = Stance.CONTRADICTS
    return Verdict(stance=stance, probability=round(supports, 4), believed=False)


def applied(answer: Answer, mode: SupportMode) -> Answer | Refusal:
    """Count the sentences of a checked answer that do not stand in a remark, or remove them.

    An answer of which nothing would be left becomes a refusal. Citations of removed sentences stay.
    """
    support = answer.support
    if support is None or not (count := support.unsupported):
        return answer
    total, single = len(support.sentences), count == 1
    part = f"{count} of {total} sentences"
    why = (
        f"{'differs from its quotes or has' if single else 'differ from their quotes or have'} none"
    )
    if mode != "drop":
        remark = f"{part} {why}; the difference is in brackets."
        return replace(answer, notes=(*answer.notes, remark))
    if count == total:
        return Refusal(
            reason="Every sentence of the model's answer differs from its quotes or has none.",
            strategy=answer.strategy,
            notes=answer.notes,
            coverage=answer.coverage,
            rungs=answer.rungs,
            shown=answer.shown,
            compression=answer.compression,
        )
    text, end = "", 0
    remaining: list[SentenceSupport] = []
    for sentence in support.sentences:
        between = answer.text[end : sentence.start] if text else ""
        end = sentence.end
        if sentence.stands:
            start = len(text) + len(between)
            text += between + answer.text[sentence.start : end]
            remaining.append(replace(sentence, start=start, end=len(text)))
    remark = f"{part} {'is' if single else 'are'} left out: {'it' if single else 'they'} {why}."
    return replace(
        answer,
        text=text,
        statements=tuple(
            Statement(start=one.start, end=one.end, citations=one.citations) for one in remaining
        ),
        support=replace(support, sentences=tuple(remaining), removed=count),
        notes=(*answer.notes, remark),
    )


def statements(answer: Answer) -> tuple[Statement, ...]:
    """Return the sentences of an answer with their citations.

    Where a reply does not say which quotes stand behind a sentence, those of the passages that it names in brackets do; else
    those of the next sentence that names any; else all.
    """
    if answer.statements:
        return answer.statements
    places = [_named(sentence.of(answer.text), answer.citations) for sentence in split(answer.text)]
    every = tuple(range(len(answer.citations)))
    following = every
    for i in range(len(places) - 1, -1, -1):
        following = places[i] = places[i] or following
    return tuple(
        Statement(start=sentence.start, end=sentence.end, citations=named)
        for sentence, named in zip(split(answer.text), places, strict=True)
    )


def _named(sentence: str, citations: Sequence[Citation]) -> tuple[int, ...]:
    ids = {
        item
        for found in references(sentence, (one.passage_id for one in citations))
        for item in found.items
    }
    return tuple(i for i, one in enumerate(citations) if one.passage_id in ids)


def _case(
    place: Statement,
    answer: Answer,
    excerpts: Mapping[str, Excerpt],
    shown: Shown,
    question: str,
) -> Case:
    cited = tuple(answer.citations[i] for i in place.citations)
    named = {one.passage_id for one in cited}
    text = _without(answer.text[place.start : place.end], named)
    quotes = cited or tuple(one for one in place.refused if _alike(text, one.quote))
    words = [one.quote for one in quotes]
    ids = {one.passage_id for one in quotes}
    around = around_of(excerpts[one].passage for one in sorted(ids))
    texts, context = ((), "") if repeats(text, words) else _texts(quotes, excerpts)
    return Case(
        place=place,
        quotes=quotes,
        differences=_differences(text, words, around, shown, question),
        claim=completed(text, question),
        texts=texts,
        premise=context,
    )


def _without(sentence: str, ids: Collection[str]) -> str:
    """Return a sentence without its references."""
    text, end = "", 0
    for found in references(sentence, ids):
        text += sentence[end : found.start].rstrip()
        end = found.end
    return text + sentence[end:]


def _differences(
    text: str, quotes: Sequence[str], around: str, shown: Shown, question: str
) -> tuple[Difference, ...]:
    """Return what rules find: names that no passage has, and what else differs from the quotes."""
    unknown = invented(text, shown)
    said = {one.casefold() for one in unknown}
    others = [
        one
        for one in (*failures(text, quotes, around), *other_subject(text, quotes, around, question))
        if one.rule is not Rule.DRUG or one.said not in said
    ]
    return (*(Difference(rule=Rule.INVENTED, said=one) for one in unknown), *others)


def _alike(text: str, quote: str) -> bool:
    """Return whether a quote that was refused speaks of the same as a sentence, so that what differs is of interest."""
    wanted = stems(text)
    return len(wanted & stems(quote)) >= _ALIKE * len(wanted)


def _texts(
    quotes: Sequence[Citation], excerpts: Mapping[str, Excerpt]
) -> tuple[tuple[str, ...], str]:
    """Return what a sentence is judged beside: each of its quotes, then all of them; and all of them in context."""
    if not quotes:
        return (), ""
    found = [surroundings(excerpts[one.passage_id], one.start, one.end) for one in quotes]
    texts = dict.fromkeys(text.strip() for *_, text in found)
    every = " ".join(texts)
    title, before, _ = found[0]
    return tuple(dict.fromkeys([*texts, every])), premise(every, title=title, before=before)


def _judged(case: Case, verdict: Verdict | None) -> SentenceSupport:
    """Return the support of a sentence from what rules found and what the judge says."""
    objected = any(one.rule.objects for one in case.differences)
    known = all(one.rule is not Rule.INVENTED for one in case.differences)
    standing = bool(case.place.citations)
    says = None if verdict is None else verdict.stance
    differences = case.differences
    if not objected and standing:
        if verdict is None:
            backing = Backing.UNCLEAR if differences else Backing.SUPPORTED
        elif says is Stance.SUPPORTS:
            backing = Backing.SUPPORTED
        elif says is None or not verdict.believed:
            backing = Backing.UNCLEAR
        else:
            backing, rule = _OBJECTIONS[says]
            differences = (*differences, Difference(rule=rule))
    elif says is Stance.SUPPORTS and known:
        backing = Backing.UNCLEAR
    else:
        contrary = objected and says is Stance.CONTRADICTS
        backing = Backing.CONTRADICTED if contrary else Backing.UNSUPPORTED
    wrong = bool(case.differences) or not standing
    return SentenceSupport(
        start=case.place.start,
        end=case.place.end,
        backing=backing,
        probability=None if verdict is None else verdict.probability,
        citations=case.place.citations,
        refused=case.place.refused,
        differences=differences,
        disagrees=says is (Stance.SUPPORTS if wrong else Stance.CONTRADICTS),
    )


def premise(text: str, *, title: str = "", before: str = "") -> str:
    """Return sentences behind the title of their document and the sentence before them, which say what "it" is."""
    title = title.strip().strip("[]").rstrip(".")
    return " ".join(part for part in (title and f"{title}.", before.strip(), text.strip()) if part)


def surroundings(excerpt: Excerpt, start: int, end: int) -> tuple[str, str, str]:
    """Return the title of an excerpt's passage, the sentence before a part of it, and the whole sentences of the part.

    Args:
        excerpt: the excerpt.
        start: first code point of the part in the passage's text.
        end: one past its last code point.
    """
    spans, text = excerpt.sentences, excerpt.passage.text
    first = bisect_right(spans, start, key=attrgetter("end"))
    last = bisect_left(spans, end, key=attrgetter("start"))
    start = min([start, *(one.start for one in spans[first:last])])
    end = max([end, *(one.end for one in spans[first:last])])
    before = spans[first - 1].of(text) if first else ""
    return excerpt.passage.title, before, text[start:end]
