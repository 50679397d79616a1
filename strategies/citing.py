"""Citations from the numbers of sentences: a sentence is cited for a claim only if it bears the claim out.

A wrong number is not a copying slip: it names a sentence that exists and says something else. So each sentence that a claim
names must share words with it, and must not speak of other numbers, drugs or names alone or negate otherwise; and those that
are left must together have its numbers with comparison and unit, its drugs and its names with digits, and negate what it
negates (:mod:`strategies.support.rules`). No model is asked. Figures: decision 42.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from posology.text.figures import figures
from posology.text.numbering import (
    Place,
    numbered,
    places,
    sentence_of,
    without_lead,
    without_names,
)
from posology.text.quotes import Claimed, Dropped, DropReason, Span, Verified, locate
from posology.text.repeats import remark, unsaid
from posology.types import UNREADABLE, Citation, Excerpt, Rule, Statement
from prompts.answer import Said
from prompts.lengths import STATEMENT_SENTENCES
from strategies.compression.checked import stems
from strategies.evidence import remarks
from strategies.support.lexicon import only_asks
from strategies.support.rules import (
    LEAST_SHARED,
    around_of,
    completed,
    denies_like,
    failures,
    guarded,
    opposes,
    repeats,
    touches,
)

#: content words of a claim from which on a sentence with all of them says it, named or not
_WORDS = 4
#: share of a sentence that a claim copies, which then says no more than the claim
_WHOLE = 0.9
#: share of a claim's words and figures below which a sentence is beside the point, if another has what it has
_BESIDE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A claim, and the sentences that it names."""

    text: str
    #: as the model wrote them
    names: Sequence[str]
    #: number of statements of the reply that say it
    said: int = 1
    #: question that it answers; empty: none
    question: str = ""

    @classmethod
    def of(cls, text: str, names: Sequence[str], question: str = "") -> Claim:
        """Return a claim of a reply. Names in its words are names: models copy the number behind a sentence with it."""
        bare, within = without_names(without_lead(text, names))
        return cls(text=bare, names=tuple(dict.fromkeys((*names, *within))), question=question)

    @property
    def subject(self) -> str:
        """Return what a sentence must be on: of a claim such as "Yes.", the question, if that has words to go by."""
        told = len(stems(self.question)) >= LEAST_SHARED
        return completed(self.text, self.question) if told else self.text

    def is_told(self, sentence: str) -> bool:
        """Return whether a sentence is on the claim's subject, and says more than what a study set out to find."""
        return touches(self.subject, sentence) and not only_asks(self.text, sentence)


def cite(claim: Claim, excerpts: Sequence[Excerpt], *, most: int = STATEMENT_SENTENCES) -> Verified:
    """Return the sentences that a claim names as citations, without those that do not bear it out.

    Args:
        claim: a claim of a reply.
        excerpts: excerpts that were shown, in the order of their labels.
        most: sentences of the claim, the first of which count.
    """
    found, unknown = named(claim.names, excerpts, most=most)
    touching = [one for one in found if claim.is_told(one.quote)]
    kept = _telling(claim.text, _bearing(claim.text, touching, excerpts))
    refused = tuple(one for one in found if one not in kept)
    unlike = (_dropped(one.quote, DropReason.UNLIKE_THE_CLAIM, one.passage_id) for one in refused)
    return Verified(citations=kept, dropped=(*unknown, *unlike), refused=refused)


def bear_out(
    claim: Claim, excerpts: Sequence[Excerpt], *, most: int = STATEMENT_SENTENCES
) -> Verified:
    """Return the sentences that bear a claim out: those that it names, or else one that says it in its own words.

    Small models copy a sentence and name another one's number: what repeats a claim stands before what it names.
    """
    verified = cite(claim, excerpts, most=most)
    if not verified.citations:
        said = _repeating(claim, excerpts) or _saying(claim, excerpts)
    elif len(stems(claim.text)) < _WORDS or repeats(
        claim.text, [one.quote for one in verified.citations]
    ):
        return verified
    else:
        said = _copied(claim, excerpts)
    return replace(verified, citations=said) if said else verified


def named(
    names: Iterable[str], excerpts: Sequence[Excerpt], *, most: int = STATEMENT_SENTENCES
) -> tuple[tuple[Citation, ...], tuple[Dropped, ...]]:
    """Return the sentences of names, each once, and the names of sentences that were not shown or not read whole.

    Args:
        names: as a model wrote them.
        excerpts: excerpts that were shown, in the order of their labels.
        most: sentences, the first of which count.
    """
    citations: dict[Citation, None] = {}
    dropped = []
    for name in names:
        cited = [_at(place, excerpts) for place in places(name)]
        if not cited or None in cited:
            dropped.append(_dropped(name, DropReason.UNKNOWN_SENTENCE))
        there = [one for one in cited if one is not None]
        dropped += [
            _dropped(one.quote, DropReason.UNREADABLE, one.passage_id)
            for one in there
            if UNREADABLE in one.quote
        ]
        citations |= dict.fromkeys(one for one in there if UNREADABLE not in one.quote)
    return tuple(islice(citations, most)), tuple(dropped)


def joined(found: Iterable[Verified]) -> Verified:
    """Return the citations of several claims as those of one, each span once."""
    every = list(found)
    return Verified(
        citations=tuple(dict.fromkeys(c for one in every for c in one.citations)),
        dropped=tuple(d for one in every for d in one.dropped),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """The statements of an answer with the citations that bear them out."""

    #: the statements as one text, each with the ids of its passages in brackets
    text: str
    verified: Verified
    #: the statements in that text
    statements: tuple[Statement, ...]
    #: remarks on statements without a standing quote, and on repetitions
    notes: tuple[str, ...] = ()


def state(statements: Iterable[Said], excerpts: Sequence[Excerpt], question: str = "") -> Stated:
    """Check the statements of an answer against the sentences that they name.

    A statement that repeats an earlier one is shown once, with the citations of both. Readers
    see a remark on a sentence that does not stand only where no other stands behind its statement.

    Args:
        statements: of a reply.
        excerpts: excerpts that were shown, in the order of their labels.
        question: that they answer.
    """
    claims, repetitions = _distinct(statements, question)
    checked = [
        (one, bear_out(one, excerpts, most=STATEMENT_SENTENCES * one.said)) for one in claims
    ]
    verified = joined(one for _, one in checked)
    places = {citation: place for place, citation in enumerate(verified.citations)}
    text = ""
    told: list[Statement] = []
    for claim, one in checked:
        start = len(text) + bool(text)
        text = f"{text} {_labelled(claim.text, one.citations)}".lstrip()
        told.append(
            Statement(
                start=start,
                end=len(text),
                citations=tuple(places[citation] for citation in one.citations),
                refused=one.refused,
            )
        )
    bare = joined(one for _, one in checked if not one.citations)
    return Stated(
        text=text,
        verified=verified,
        statements=tuple(told),
        notes=(*remarks(bare), *remark(repetitions)),
    )


def _distinct(statements: Iterable[Said], question: str) -> tuple[list[Claim], int]:
    """Return the statements that say something new, with the sentences of all that say it; and the number of repetitions."""
    said: dict[tuple[str, ...], int] = {}
    claims: list[Claim] = []
    repetitions = 0
    for one in statements:
        claim = Claim.of(one.text.strip(), one.sentences, question)
        new = unsaid(claim.text, said, len(claims))
        repetitions += new.text != claim.text
        if new.text:
            claims.append(replace(claim, text=new.text))
        elif claim.text:
            earlier = claims[new.first]
            claims[new.first] = replace(
                earlier, names=(*earlier.names, *claim.names), said=earlier.said + 1
            )
    return claims, repetitions


def _labelled(text: str, citations: Sequence[Citation]) -> str:
    """Return a statement with the ids of its passages before its full stop."""
    if not citations:
        return text
    ids = ", ".join(dict.fromkeys(one.passage_id for one in citations))
    bare = text.removesuffix(".")
    return f"{bare} [{ids}]{text[len(bare) :]}"


def _at(place: Place, excerpts: Sequence[Excerpt]) -> Citation | None:
    if place.passage >= len(excerpts):
        return None
    excerpt = excerpts[place.passage]
    span = sentence_of(excerpt, place.sentence)
    if span is None:
        return None
    passage = excerpt.passage
    return Citation(
        passage_id=passage.id, start=span.start, end=span.end, quote=span.of(passage.text)
    )


def _repeating(claim: Claim, excerpts: Sequence[Excerpt]) -> tuple[Citation, ...]:
    """Return the first sentences that repeat a claim; none: no such."""
    for excerpt in excerpts:
        passage = excerpt.passage
        span = locate(claim.text, passage.text)
        if isinstance(span, Span):
            whole = [
                one for one in excerpt.sentences if one.start < span.end and one.end > span.start
            ]
            start = min([span.start, *(one.start for one in whole)])
            end = max([span.end, *(one.end for one in whole)])
            quote = passage.text[start:end]
            if not only_asks(claim.text, quote):
                return (Citation(passage_id=passage.id, start=start, end=end, quote=quote),)
    return ()


def _copied(claim: Claim, excerpts: Sequence[Excerpt]) -> tuple[Citation, ...]:
    """Return a whole sentence that is shown and that a claim copies; none: no such.

    A claim that is only a part of a sentence may be what that sentence denies, doubts or limits.
    """
    for excerpt in excerpts:
        passage = excerpt.passage
        span = locate(claim.text, passage.text)
        if not isinstance(span, Span) or passage.retracted:
            continue
        for one in excerpt.sentences:
            quote = one.of(passage.text)
            if (
                one.start <= span.start
                and span.end <= one.end
                and span.end - span.start >= _WHOLE * len(quote.rstrip())
                and UNREADABLE not in quote
                and not only_asks(claim.text, quote)
            ):
                return (Citation(passage_id=passage.id, start=one.start, end=one.end, quote=quote),)
    return ()


def _saying(claim: Claim, excerpts: Sequence[Excerpt]) -> tuple[Citation, ...]:
    """Return a sentence that is shown and has all words of a claim; none: no such."""
    wanted = stems(claim.text)
    if len(wanted) < _WORDS:
        return ()
    for i, excerpt in enumerate(excerpts):
        around = around_of([excerpt.passage])
        for n in range(1, len(numbered(excerpt)) + 1):
            one = _at(Place(passage=i, sentence=n), excerpts)
            if one is None or UNREADABLE in one.quote or not wanted <= stems(one.quote):
                continue
            if claim.is_told(one.quote) and not failures(claim.text, [one.quote], around):
                return (one,)
    return ()


def _bearing(
    claim: str, named: Sequence[Citation], excerpts: Sequence[Excerpt]
) -> tuple[Citation, ...]:
    """Return those of some sentences that together state what a claim states; none: they do not.

    A sentence that speaks of something else goes, but only if another one has what it lacks: a claim beside which a sentence
    of the same words negates otherwise needs one that negates alike. A passage in which another drug is named for the claim
    is no context that its other sentences take their drug from.
    """
    against = {one: rules for one in named if (rules := opposes(claim, one.quote))}
    kept = tuple(one for one in named if one not in against)
    quotes = [one.quote for one in kept]
    turned = any(Rule.NEGATION in rules for rules in against.values())
    if not kept or (turned and not denies_like(claim, quotes)):
        return ()
    other = {one.passage_id for one, rules in against.items() if Rule.DRUG in rules}
    subjects = {one.passage_id for one in kept} - other
    around = around_of(one.passage for one in excerpts if one.passage.id in subjects)
    return () if any(guarded(claim, quotes, around)) else kept


def _telling(claim: str, kept: Sequence[Citation]) -> tuple[Citation, ...]:
    """Return the citations without those beside the point, which have little of a claim and nothing that the others lack."""
    if len(kept) < 2:
        return tuple(kept)
    wanted = {*stems(claim), *figures(claim)}
    have = {one: wanted & {*stems(one.quote), *figures(one.quote)} for one in kept}
    needed = dict(have)
    for one, own in sorted(have.items(), key=lambda item: len(item[1])):
        others = set().union(*(theirs for other, theirs in needed.items() if other != one))
        if len(needed) > 1 and len(own) < _BESIDE * len(wanted) and own <= others:
            del needed[one]
    return tuple(needed)


def _dropped(quote: str, reason: DropReason, passage_id: str | None = None) -> Dropped:
    return Dropped(claimed=Claimed(passage_id=passage_id, quote=quote), reason=reason)
