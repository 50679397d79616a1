"""MedRAG's chunks (Xiong et al. 2024, section 3.2 and its published files): what their ids and titles tell.

They are lines of JSON with ``id``, ``title``, ``content`` and ``contents``, which is title and content in one, and are
known by having ``contents``. Which of the four collections a chunk is of is told by the form of its id.
"""

from __future__ import annotations

import re
from dataclasses import replace

from posology.corpus.titles import says_retracted
from posology.types import Passage

_PUBMED = re.compile(r"pubmed[0-9]{2}n[0-9]{4}_[0-9]+")
_STATPEARLS = re.compile(r"(article-[0-9]+)_[0-9]+")
_WIKIPEDIA = re.compile(r"wiki[0-9]{8}en[0-9]{3}_[0-9]+")
#: between an article's name and its headings in a title of StatPearls
_STEP = " -- "


def told(passage: Passage, *, wiki_id: object = None) -> Passage:
    """A chunk with the collection as its source, and its article as its parent; what it has already stays.

    The id is kept, so that results can be compared with MedRAG's. A chunk of PubMed is a whole abstract: its parent is
    ``pmid:N``, so that whatever NLM withdraws under that number goes; if its title begins with ``RETRACTED:`` it was.
    A textbook is no article: its chunks have no parent. An id of another form tells nothing.

    Args:
        passage: as it was read.
        wiki_id: number of the page that a chunk of Wikipedia is of.
    """
    if _PUBMED.fullmatch(passage.id):
        # the files have no other word of it
        known = replace(passage, retracted=passage.retracted or says_retracted(passage.title))
        return _with(known, "pubmed", passage.pmid and f"pmid:{passage.pmid}")
    if article := _STATPEARLS.fullmatch(passage.id):
        title, _, headings = passage.title.partition(_STEP)
        section = " > ".join(part for part in headings.split(_STEP) if part) or None
        cut = replace(passage, title=title, section=passage.section or section)
        return _with(cut, "statpearls", article[1])
    if _WIKIPEDIA.fullmatch(passage.id):
        page = str(wiki_id) if isinstance(wiki_id, int | str) else ""
        return _with(passage, "wikipedia", f"wikipedia:{page}" if page.isdigit() else None)
    return passage


def _with(passage: Passage, collection: str, parent: str | None) -> Passage:
    return replace(
        passage,
        source=passage.source or f"medrag:{collection}",
        parent=passage.parent or parent or None,
    )
