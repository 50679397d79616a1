"""Files of literature in every format, made for tests: nothing in them was ever published."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping, Sequence

from tests.support.pubmed_xml import article, comment, document


def _note(pmid: str, title: str, abstract: str | None, comments: str = "") -> str:
    return article(
        pmid,
        title=title,
        abstract=abstract,
        comments=comments,
        journal="<Title>Notes</Title>",
        medline_ta="Notes",
    )


PUBMED = document(
    _note("11", "One.", "Rest helped some."),
    _note("12", "Two.", None),
    _note("13", "Retraction of a note.", "It is retracted.", comment("RetractionOf", "11")),
    deleted=("14", "15"),
)


def words(count: int, start: int = 0) -> str:
    """Sentences of ten words each, all words different."""
    made = [f"w{start + i}" for i in range(count)]
    lines = (made[i : i + 10] for i in range(0, count, 10))
    return " ".join(f"W{' '.join(line)[1:]}." for line in lines)


def jats(
    body: str = "<body><sec><title>Methods</title><p>Half of them were given salt.</p></sec></body>",
    *,
    ids: Mapping[str, str] | None = None,
    meta: str = "<abstract><p>Salt was compared with none.</p></abstract>",
    title: str = "A trial of salt",
    kind: str = "research-article",
    journal: str = "<journal-title-group><journal-title>Notes on Salt</journal-title></journal-title-group>",
    back: str = "",
    attributes: str = 'xml:lang="en"',
) -> str:
    """One article, without a declaration."""
    named = {"pmc": "PMC70", "pmid": "71"} if ids is None else ids
    said = "".join(f'<article-id pub-id-type="{k}">{v}</article-id>' for k, v in named.items())
    return (
        '<article xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'xmlns:mml="http://www.w3.org/1998/Math/MathML" article-type="{kind}" {attributes}>'
        f"<front><journal-meta>{journal}</journal-meta><article-meta>{said}<title-group><article-title>{title}"
        f"</article-title></title-group>{meta}</article-meta></front>{body}{back}</article>"
    )


def article_set(*articles: str) -> bytes:
    """Articles as PMC's interfaces give them."""
    return f'<?xml version="1.0"?><pmc-articleset>{"".join(articles)}</pmc-articleset>'.encode()


def archive(members: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    """A tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:  # type: ignore[call-overload]  # a mode is a string
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def pdf(pages: Sequence[Sequence[str]], *, title: str = "") -> bytes:
    """A PDF with these lines on its pages, in characters of Latin-1."""
    objects = [
        "",
        "",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    kids = []
    for lines in pages:
        shown = "".join(f"({_escaped(line)}) Tj T* " for line in lines)
        stream = f"BT /F1 10 Tf 14 TL 50 780 Td {shown}ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {len(objects)} 0 R >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = "<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({_escaped(title)}) >>")
    out = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return out + (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n"
        f"<< /Size {size} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    ).encode("latin-1")


def _escaped(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


_LINES = [{"id": f"n:{i}", "text": f"Text {i}.", "title": "T"} for i in range(4)]
_JSONL = b"\n".join(json.dumps(line).encode() for line in _LINES) + b"\n{oops\n"
_JATS = f'<?xml version="1.0"?>{jats()}'.encode()
_TEXT = f"{words(120)}\n\n{words(90, 500)}\n\fNew page. It has two sentences.".encode()
_MEMBERS = {
    "PMC000xxxxxx/PMC70.xml": _JATS,
    "PMC000xxxxxx/PMC72.xml": b"<article>",
    "PMC000xxxxxx/list.csv": b"a,b",
    "PMC000xxxxxx/PMC73.nxml": jats(ids={"pmc": "73"}).encode(),
}

#: of every row of ``posology.corpus.files.KINDS``, by its name, whole files by their names
SAMPLES: dict[str, dict[str, bytes]] = {
    "jsonl": {"a.jsonl": _JSONL, "a.jsonl.gz": gzip.compress(_JSONL)},
    "pubmed": {"a.xml": PUBMED, "a.xml.gz": gzip.compress(PUBMED)},
    "jats": {
        "a.nxml": _JATS,
        "a.nxml.gz": gzip.compress(_JATS),
        "b.xml": article_set(jats(), jats(ids={}), jats(ids={"doi": "10.1000/B"})),
        "a.xml.gz": gzip.compress(_JATS),
    },
    "jats archive": {
        "a.tar.gz": archive(_MEMBERS),
        "a.tgz": archive(_MEMBERS),
        "a.tar": archive(_MEMBERS, "w"),
    },
    "text": {"a.txt": _TEXT, "a.txt.gz": gzip.compress(_TEXT)},
    "pdf": {"a.pdf": pdf([["Salt helped in", "this trial. It was", "cheap."], ["So it ends."]])},
}
