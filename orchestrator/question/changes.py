"""Changes of an answer's evidence between the index version that it used and the newest one."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from posology.errors import VersionGone
from posology.index.store import Index
from posology.index.view import View
from posology.published.affected import ChangeKind, EvidenceChange
from posology.published.answers import Disagreement, Evidence, Source
from posology.types import Flag, FlagKind, Passage

_KINDS: Mapping[FlagKind, ChangeKind] = {
    FlagKind.RETRACTION: ChangeKind.RETRACTED,
    FlagKind.CONCERN: ChangeKind.CONCERN,
    FlagKind.CORRECTION: ChangeKind.CORRECTED,
}


class Answered(Protocol):
    """An answer, as far as its evidence is compared."""

    @property
    def index(self) -> str:
        """Name and version of its index."""
        ...

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Its verified quotes."""
        ...

    @property
    def conflicts(self) -> tuple[Disagreement, ...]:
        """Contradictions among its sources."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Cited:
    """A passage that an answer cites."""

    source: Source
    #: quotes of it, each once
    quotes: tuple[str, ...]
    #: the same quotes with their places, as far as the answer has them
    evidence: tuple[Evidence, ...]


def cited(out: Answered) -> tuple[Cited, ...]:
    """Return the passages that an answer cites in its evidence and conflicts, each once."""
    sources: dict[str, Source] = {}
    quotes: dict[str, dict[str, None]] = {}
    evidence: dict[str, list[Evidence]] = {}
    for one in out.evidence:
        sources.setdefault(one.passage.id, one.passage)
        quotes.setdefault(one.passage.id, {})[one.quote] = None
        evidence.setdefault(one.passage.id, []).append(one)
    for conflict in out.conflicts:
        for position in (*conflict.supporting, *conflict.opposing):
            sources.setdefault(position.passage.id, position.passage)
            quotes.setdefault(position.passage.id, {}).update(dict.fromkeys(position.quotes))
    return tuple(
        Cited(source=source, quotes=tuple(quotes[name]), evidence=tuple(evidence.get(name, ())))
        for name, source in sources.items()
    )


class Changes:
    """Compares answers with the newest version of an index. Blocking; for one page of answers.

    Args:
        index: the index.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._newest = index.view()
        self._versions = index.versions()
        #: passages that were read by version and id; ``None``: the version has none of that id
        self._known: dict[str, dict[str, Passage | None]] = {}

    @property
    def version(self) -> str:
        """Return name and version of the index that answers are compared with."""
        return self._newest.version

    def comparable(self, out: Answered) -> bool:
        """Return whether an answer used an index of this name."""
        return out.index.rpartition("@")[0] == self._index.name

    def load(self, outs: Iterable[Answered]) -> None:
        """Read the passages that answers cite, those of one version at once.

        Raises:
            IndexFault: the index cannot be read.
        """
        wanted: dict[str, dict[str, None]] = {}
        for out in outs:
            if self._differs(out):
                ids = dict.fromkeys(one.source.id for one in cited(out))
                for version in (self.version, out.index):
                    wanted.setdefault(version, {}).update(ids)
        for version, ids in wanted.items():
            self._read(version, list(ids))

    def of(self, out: Answered) -> tuple[EvidenceChange, ...]:
        """Return what has changed in the passages that an answer cites.

        Raises:
            IndexFault: the index cannot be read.
        """
        if not self._differs(out):
            return ()
        passages = cited(out)
        ids = [one.source.id for one in passages]
        now, before = self._read(self.version, ids), self._read(out.index, ids)
        found: list[EvidenceChange] = []
        for one in passages:
            found += self._changes(one, now.get(one.source.id), before.get(one.source.id), out)
        return tuple(found)

    def _differs(self, out: Answered) -> bool:
        return out.index != self.version and self.comparable(out)

    def _read(self, version: str, ids: Sequence[str]) -> Mapping[str, Passage | None]:
        """Return passages of a version by id; none of a version that is gone."""
        known = self._known.setdefault(version, {})
        if missing := [one for one in ids if one not in known]:
            found: Mapping[str, Passage] = {}
            with suppress(VersionGone):
                newest = version == self.version
                found = _read(self._newest if newest else self._index.view_at(version), missing)
            known.update({one: found.get(one) for one in missing})
        return known

    def _changes(
        self, reference: Cited, now: Passage | None, before: Passage | None, out: Answered
    ) -> Iterator[EvidenceChange]:
        name = reference.source.id
        given: dict[str, Any] = {"passage": name, "title": reference.source.title}

        def since(changed: Callable[[Passage | None], bool]) -> dict[str, Any]:
            return self._since(name, out, changed)

        if now is None:
            yield EvidenceChange(
                **given,
                kind=ChangeKind.REMOVED,
                lost_quotes=reference.quotes,
                **since(lambda p: p is None),
            )
            return
        for flag in _news(reference.source, now):
            yield EvidenceChange(
                **given,
                kind=_KINDS[flag.kind],
                source=flag.source or None,
                by=flag.by,
                date=flag.date,
                **since(partial(_carries, flag)),
            )
        if _replaced(reference, now, before):
            standing = tuple(quote for quote in reference.quotes if quote in now.text)
            yield EvidenceChange(
                **given,
                kind=ChangeKind.REPLACED,
                digest=_digest(now),
                standing_quotes=standing,
                lost_quotes=tuple(quote for quote in reference.quotes if quote not in standing),
                **since(lambda p: p is None or _replaced(reference, p, before)),
            )

    def _since(
        self, name: str, out: Answered, changed: Callable[[Passage | None], bool]
    ) -> dict[str, Any]:
        """Return the first readable version after an answer's that has a change, and its time."""
        number = int(out.index.rpartition("@")[2])
        later = [one for one in self._versions if number < one.number <= self._newest.number]

        def has(number: int) -> int:
            return changed(_read(self._index.view_at(number), [name]).get(name))

        try:
            place = bisect_left(later, 1, key=lambda one: has(one.number))
        except VersionGone:  # it expired meanwhile
            return {}
        if place == len(later):
            return {}
        first = later[place]
        return {"version": f"{self._index.name}@{first.number}", "published": first.at}


def _read(view: View, ids: Sequence[str]) -> dict[str, Passage]:
    known = list(view.digests(ids)) if ids else []
    return {row.passage.id: row.passage for row in view.fetch(known)} if known else {}


def _carries(flag: Flag, passage: Passage | None) -> bool:
    return passage is None or flag in _flags(passage)


def _digest(passage: Passage) -> str:
    text = f"{passage.title}\0{passage.text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _flags(passage: Passage) -> tuple[Flag, ...]:
    """Return the flags of a passage; of an index without sources of flags, those that its marks imply."""
    kinds = {flag.kind for flag in passage.flags}
    marks = (
        (FlagKind.RETRACTION, passage.retracted),
        (FlagKind.CONCERN, passage.concern),
    )
    implied = (
        Flag(kind=kind, source="", by=None, date=None)
        for kind, holds in marks
        if holds and kind not in kinds
    )
    return (*passage.flags, *implied)


def _news(source: Source, now: Passage) -> Iterable[Flag]:
    """Yield the flags that an answer's source did not have: of retraction and concern, only if it was not marked."""
    known = {
        FlagKind.RETRACTION: source.retracted,
        FlagKind.CONCERN: source.concern,
    }
    had = {(flag.source, flag.by, flag.date) for flag in source.flags if flag.kind in _KINDS}
    for flag in _flags(now):
        corrected = flag.kind is FlagKind.CORRECTION
        if corrected and (flag.source, flag.by, flag.date) in had:
            continue
        if flag.kind in _KINDS and not known.get(flag.kind, False):
            yield flag


def _replaced(one: Cited, now: Passage, before: Passage | None) -> bool:
    """Return whether title or text differ; where the old ones are gone, whether the cited sentences do."""
    if before is not None:
        return (now.title, now.text) != (before.title, before.text)
    return now.title != one.source.title or any(
        now.text[item.context_start : item.context_start + len(item.context)] != item.context
        for item in one.evidence
    )
