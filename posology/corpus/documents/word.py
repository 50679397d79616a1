"""Reader of Word's files (``.docx``) through mammoth, an optional dependency, which makes pages of them."""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from posology.corpus import decoding
from posology.corpus.documents.html import Unreadable, article
from posology.corpus.documents.markup import Page, page_of
from posology.corpus.drafts import Broken, Draft
from posology.corpus.items import sentence
from posology.corpus.optional import OptionalReader

SUFFIXES = (".docx",)
#: bytes of a file's XML, unpacked, which is held whole; pictures are not read
MAX_BYTES = 16_000_000
MAX_MEMBERS = 10_000

_CHUNK = 65_536
_XML = (".xml", ".rels")
_DOCTYPE = tuple("<!DOCTYPE".encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-16-be"))
#: Word's headings begin below the title; their names are in English whatever the language of the program
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(
            f"p[style-name='{name} {level}'] => h{min(level + 1, 6)}:fresh"
            for level in range(1, 7)
            for name in ("heading", "Heading")
        ),
    ]
)


def _drafts(path: Path) -> Iterator[Draft]:
    """Yield the passages of one document as the parts of one article.

    Tracked insertions are read and deletions are not; headers, comments and pictures are not read either. A file whose
    XML is larger than :data:`MAX_BYTES`, or declares entities, is a bad file.
    """
    try:
        with path.open("rb") as stream:
            page = _page(_copied(stream))
    except Unreadable as error:
        yield Broken(reason=str(error))
        return
    except OSError as error:
        yield Broken(reason=decoding.message(error))
        return
    yield from article(page, path, source="word", suffixes=SUFFIXES)


READER = OptionalReader(
    drafts=_drafts, module="mammoth", package="mammoth", extra="word", files="Word files"
)
read, count, require = READER.read, READER.count, READER.require


def _copied(stream: IO[bytes]) -> IO[bytes]:
    """Return an archive of the XML alone, which declares nothing, and is small enough to be held.

    Sizes that a file states may be wrong, and its main document may be any member: so mammoth is given the members that
    were unpacked here.
    """
    copy = io.BytesIO()
    left = MAX_BYTES
    try:
        with zipfile.ZipFile(stream) as archive, zipfile.ZipFile(copy, "w") as out:
            members = archive.infolist()
            if len(members) > MAX_MEMBERS:
                raise Unreadable(f"must have <= {MAX_MEMBERS:,} members (got {len(members):,})")
            if len({one.filename for one in members}) < len(members):
                raise Unreadable("damaged: has several members of one name")
            for one in members:
                if not one.filename.lower().endswith(_XML):
                    continue
                content = bytearray()
                with archive.open(one) as member:
                    while part := member.read(_CHUNK):
                        content += part
                        if len(content) > left:
                            raise Unreadable(f"must have <= {MAX_BYTES:,} bytes of text, unpacked")
                left -= len(content)
                if any(mark in content for mark in _DOCTYPE):
                    raise Unreadable("declares entities, which Word does not: not read")
                out.writestr(one.filename, bytes(content))
    except (Unreadable, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - zipfile lets anything through, e.g. struct.error and zlib.error
        raise Unreadable(
            f"not a Word file, damaged, or encrypted: {sentence(str(error))}"
        ) from None
    copy.seek(0)
    return copy


def _page(stream: IO[bytes]) -> Page | None:
    import mammoth

    logging.getLogger("mammoth").setLevel(logging.CRITICAL)
    try:
        made: str = mammoth.convert_to_html(
            stream, style_map=_STYLES, convert_image=mammoth.images.img_element(_no_picture)
        ).value
    except Exception as error:  # noqa: BLE001 - of a damaged file it lets anything through
        reason = sentence(" ".join(str(error).split())[:200] or type(error).__name__)
        raise Unreadable(f"damaged: {reason}") from None
    return page_of(made.encode(errors="replace"))


def _no_picture(_: Any) -> dict[str, str]:
    return {}
