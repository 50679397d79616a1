"""Claims, the sentences behind them, and what people say that these say of them, for :mod:`evals.support` and :mod:`evals.attacks`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posology.text.sentences import split
from posology.types import Citation, Excerpt, Passage, Sentence, Stance
from training.gold import rows
from training.judge.cases import HEALTHVER
from training.pruner_cases import CLAIMS, PARTS, POOL, alone, fine_starts, part_of
from training.reader.abstracts import WRITTEN

FILES = (CLAIMS, POOL, HEALTHVER, WRITTEN)
_LABELS = {"Supports": Stance.SUPPORTS, "Refutes": Stance.CONTRADICTS, "Neutral": Stance.SILENT}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gold:
    """A claim, sentences of a document, and what people say that they say of it."""

    #: name of its set
    origin: str
    #: unit of the bootstrap
    document: str
    claim: str
    excerpt: Excerpt
    #: places of the sentences that are cited for the claim, from 0
    cited: tuple[int, ...]
    stance: Stance
    #: ``train``, ``dev`` or ``test``
    part: str
    #: kind of the error of a contradicted claim
    how: str = ""
    #: number of its writer; 0: unknown
    writer: int = 0

    @property
    def aside(self) -> bool:
        """Whether neither training nor calibration has seen it."""
        return self.part == "test"

    @property
    def supports(self) -> bool:
        """Whether the sentences support the claim."""
        return self.stance is Stance.SUPPORTS

    @property
    def around(self) -> str:
        """Title and text of the document."""
        return f"{self.excerpt.passage.title}\n{self.excerpt.passage.text}"

    def saying(self, claim: str) -> Gold:
        """Return the same sentences behind another claim."""
        return replace(self, claim=claim)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The cited sentences."""
        passage = self.excerpt.passage
        return tuple(
            Citation(
                passage_id=passage.id,
                start=(span := self.excerpt.sentences[i]).start,
                end=span.end,
                quote=span.of(passage.text),
            )
            for i in self.cited
        )


def scifact(data: Path) -> list[Gold]:
    """Return SciFact's claims with each group of rationale sentences."""
    docs = {row["id"]: row for row in rows(data / POOL) if row["source"] == "scifact"}
    found = []
    for row in rows(data / CLAIMS):
        for number, evidence in row["evidence"].items():
            doc = docs.get(f"scifact:{number}")
            if doc is None:
                continue
            excerpt = _excerpt(doc["id"], doc.get("title") or "", doc["text"])
            told = evidence["label"] == "SUPPORT"
            found += [
                Gold(
                    origin="scifact",
                    document=doc["id"],
                    claim=row["claim"],
                    excerpt=excerpt,
                    cited=tuple(group),
                    stance=Stance.SUPPORTS if told else Stance.CONTRADICTS,
                    part=part_of(doc["id"]),
                )
                for group in evidence["sentences"]
                if group and max(group) < len(excerpt.sentences)
            ]
    return found


def written(data: Path) -> list[Gold]:
    """Return the claims that were written beside abstracts, with their evidence."""
    docs = {row["id"]: row for row in rows(data / POOL)}
    found = []
    for row in rows(data / WRITTEN):
        doc = docs[row["id"]]
        passage = Passage(id=doc["id"], title=doc.get("title") or "", text=doc["text"])
        excerpt = Excerpt(passage=passage, sentences=split(doc["text"]))
        found += [
            Gold(
                origin="claims",
                document=doc["id"],
                claim=one["claim"],
                excerpt=excerpt,
                cited=tuple(k - 1 for k in one["s"]),
                stance=stance,
                part=part_of(doc["id"]),
                how=one.get("how", ""),
                writer=row["writer"],
            )
            for stance in Stance
            for one in row[stance.value]
        ]
    return found


def _excerpt(name: str, title: str, text: str) -> Excerpt:
    """Return a document with its sentences as those who marked them counted them."""
    starts = fine_starts(text, split(text))
    ends = [*starts[1:], len(text)]
    spans = tuple(
        Sentence(start=a, end=a + len(text[a:b].rstrip()))
        for a, b in zip(starts, ends, strict=True)
    )
    return Excerpt(passage=Passage(id=name, title=title, text=text), sentences=spans)


def healthver(data: Path) -> list[Gold]:
    """Return HealthVer's claims, each with one evidence that stands beside claims of the same part alone."""
    pairs = [(row["claim"], one) for row in rows(data / HEALTHVER) for one in row["evidence"]]
    own = {
        part: {
            one["text"]
            for _, one in alone(
                pairs, part, named=_of_healthver, texts=lambda pair: [pair[1]["text"]]
            )
        }
        for part in PARTS
    }
    return [
        Gold(
            origin="healthver",
            document=claim,
            claim=claim,
            excerpt=Excerpt(
                passage=Passage(id="healthver", text=one["text"]),
                sentences=(Sentence(start=0, end=len(one["text"])),),
            ),
            cited=(0,),
            stance=_LABELS[one["label"]],
            part=part,
        )
        for claim, one in pairs
        if one["text"].strip() and one["text"] in own[part := part_of(f"healthver:{claim}")]
    ]


def _of_healthver(pair: tuple[str, Mapping[str, Any]]) -> str:
    return f"healthver:{pair[0]}"
