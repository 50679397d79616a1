"""NLM's MeSH descriptors: the headings, and the words that mean the same.

``desc2026.xml`` and those of other years, plain or gzipped; https://www.nlm.nih.gov/databases/download/mesh.html,
DTD nlmdescriptorrecordset.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from posology.corpus.decoding import opened
from posology.corpus.items import sentence
from posology.corpus.pubmed.words import plain
from posology.errors import BadFile

if TYPE_CHECKING:
    from lxml.etree import _Element

_ROOT = "DescriptorRecordSet"
_RECORD = "DescriptorRecord"


@dataclass(frozen=True, kw_only=True, slots=True)
class Heading:
    """A MeSH heading with its entry terms, each once."""

    #: as records of PubMed name it: ``Myocardial Infarction``
    name: str
    #: terms of its preferred concept, which mean the same: ``Heart Attack``
    synonyms: tuple[str, ...]
    #: terms of its other concepts, narrower or broader, which MeSH keeps under the one heading
    related: tuple[str, ...]

    @property
    def terms(self) -> tuple[str, ...]:
        """Return all entry terms."""
        return self.synonyms + self.related


def read_terms(path: Path) -> Iterator[Heading]:
    """Yield the headings of a file of descriptors, in its order, in constant memory.

    Permuted terms ("Infarction, Myocardial") are left out: they hold the same words.

    Args:
        path: XML, plain or gzipped (detected by content). No entity is expanded and nothing is fetched.

    Raises:
        BadFile: the file cannot be read, or has no descriptors; raised after the headings before the fault.
    """
    from lxml import etree

    read = 0
    try:
        with opened(path) as stream:
            for element in _records(cast("BinaryIO", stream)):
                read += 1
                if (heading := _heading(element)) is not None:
                    yield heading
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise BadFile(sentence(reason or str(error)), path=str(path), line=read or None) from error
    except etree.XMLSyntaxError as error:
        raise BadFile(
            f"not well-formed XML: {sentence(error.msg or '')}", path=str(path), line=read or None
        ) from error
    if not read:
        raise BadFile(
            "has no MeSH descriptor: use NLM's file, such as desc2026.xml", path=str(path)
        )


def _records(stream: BinaryIO) -> Iterator[_Element]:
    from lxml import etree

    events = etree.iterparse(
        stream,
        events=("end",),
        tag=_RECORD,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
    )
    for _, element in events:
        yield element
        element.clear(keep_tail=False)
        while element.getprevious() is not None:
            del element.getparent()[0]


def _heading(element: _Element) -> Heading | None:
    name = plain(element.findtext("DescriptorName/String"))
    if not name:
        return None
    synonyms: dict[str, None] = {}
    related: dict[str, None] = {}
    for concept in element.iterfind("ConceptList/Concept"):
        preferred = concept.get("PreferredConceptYN", "Y") == "Y"
        for term in concept.iterfind("TermList/Term"):
            if term.get("IsPermutedTermYN", "N") == "Y":
                continue
            if (text := plain(term.findtext("String"))) and text != name:
                (synonyms if preferred else related)[text] = None
    return Heading(
        name=name,
        synonyms=tuple(synonyms),
        related=tuple(term for term in related if term not in synonyms),
    )
