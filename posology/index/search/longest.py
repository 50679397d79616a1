"""Passages that are too long to be shown to a model: earlier versions took them into an index."""

from __future__ import annotations

from dataclasses import replace

from posology.types import (
    MAX_PASSAGE,
    UNREADABLE,
    Passage,
    Phrases,
    Retrieved,
    Sentence,
    TokenCodes,
)

#: characters of a title and of a section, and numbers of types and trials, of a passage that is cut
_HEADING, _NAMES = 1_000, 10


def bounded(retrieved: Retrieved) -> Retrieved:
    """Return a passage with at most about :data:`~posology.types.MAX_PASSAGE` characters, cut after a sentence.

    What stands at the end of the text says so, and can be quoted as little as a sentence that had to be cut.
    """
    if retrieved.passage.length <= MAX_PASSAGE:
        return retrieved
    passage = _headed(retrieved.passage)
    room = MAX_PASSAGE - (passage.length - len(passage.text))
    if len(passage.text) <= room:
        # the heading alone was too long
        return replace(retrieved, passage=passage)
    whole = sum(1 for sentence in retrieved.sentences if sentence.end <= room)
    sentences = retrieved.sentences[:whole]
    end = sentences[-1].end if sentences else room
    if not sentences:
        sentences = (
            Sentence(start=min(retrieved.sentences[0].start, end), end=end + len(UNREADABLE)),
        )
    said = f"({len(passage.text):,} characters, of which {end:,} are read: ingest the record again)"
    text = f"{passage.text[:end]}{UNREADABLE if not whole else ''}\n\n{UNREADABLE} {said}"
    pages = None if passage.pages is None else passage.pages.cut(0, end)
    kept = len(sentences)
    return replace(
        retrieved,
        passage=replace(passage, text=text, pages=pages),
        sentences=sentences,
        sentence_vectors=retrieved.sentence_vectors[:kept],
        roles=None if retrieved.roles is None else retrieved.roles[:kept],
        phrases=None if retrieved.phrases is None else _phrases(retrieved.phrases, end),
        tokens=None if retrieved.tokens is None else _tokens(retrieved.tokens, kept),
    )


def _headed(passage: Passage) -> Passage:
    return replace(
        passage,
        title=passage.title[:_HEADING],
        section=passage.section and passage.section[:_HEADING],
        publication_types=tuple(
            one[: _HEADING // _NAMES] for one in passage.publication_types[:_NAMES]
        ),
        trials=tuple(one[: _HEADING // _NAMES] for one in passage.trials[:_NAMES]),
    )


def _phrases(found: Phrases, end: int) -> Phrases:
    kept = int((found.ends <= end).sum())
    return Phrases(
        starts=found.starts[:kept],
        ends=found.ends[:kept],
        words=found.words[:kept],
        information=found.information[:kept],
        clauses=found.clauses[:kept],
        protected=found.protected[:kept],
    )


def _tokens(found: TokenCodes, sentences: int) -> TokenCodes:
    # the first count is the heading's
    counts = found.counts[: 1 + sentences]
    return TokenCodes(codes=found.codes[: int(counts.sum())], counts=counts)
