"""Files of literature in every format, made for tests: nothing in them was ever published."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Mapping, Sequence

from evals.corpus.fuzz import many
from evals.corpus.seeds import MANY
from posology.testing.literature.studies import STUDIES
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


CSV = (
    "\ufeffPMID,Title,Abstract,Journal,Publication Year,DOI,Publication Type,Language\r\n"
    '101,"Salt, and water","Salt helped some.\r\nWater did not, said ""few"".",Notes on Salt,2012,10.1000/T1,Article,English\r\n'
    "102,Nothing,[No abstract available],Notes,2013,,,\r\n"
    ",Sand,Sand was given for 5 µg/L.,Notes,2014-05-02,https://doi.org/10.1000/t3,Review,en\r\n"
    ",RETRACTED: Clay,Clay hurt none.,Notes,,,,\r\n"
).encode()
TSV = b"key\ttitle\tabstract\nk1\tSalt\tSalt helped.\nk2\tSand\tSand did not.\n"
NBIB = b"""PMID- 201
OWN - NLM
STAT- MEDLINE
DP  - 2012 Jul 5
TI  - [Salt against
      thirst].
LID - 10.1000/n1 [doi]
AB  - BACKGROUND: Salt was compared. RESULTS: It helped
      some of those who
      had it.
LA  - ger
PT  - Journal Article
PT  - Randomized Controlled Trial
SI  - ClinicalTrials.gov/NCT00000620
JT  - Notes on salt
TA  - Notes Salt
MH  - *Salt/administration & dosage
MH  - Humans
PMC - PMC2010
SO  - Notes Salt. 2012 Jul 5;1(1):1-2.

PMID- 202
TI  - No words.
SO  - Notes Salt. 2013.

PMID- 203
TI  - Retraction of an older one.
AB  - We retract it.
PT  - Retraction of Publication
ROF - Notes Salt. 2010;1:1. PMID: 199
UOF - Notes Salt. 2011;1:1. PMID: 198
SO  - Notes Salt. 2014 Feb.
"""
RIS = """Record #1 of 3
TY  - JOUR
AN  - 301
DB  - Ovid MEDLINE(R)
T1  - Salt for
some
AB  - Salt helped 5 µg of them.
It went on.
JO  - Notes
Y1  - 2012/07//
LA  - English
M3  - Review
ER  -

TY  - JOUR
TI  - Sand
ER  -

TY  - JOUR
ID  - sand2012
TI  - Sand
N2  - Sand did not help.
PY  - 2012
DO  - 10.1000/R3.
N1  - PMID: 303
ER  -
""".encode()


def endnote(*records: str) -> bytes:
    """Records as EndNote exports them."""
    return f'<?xml version="1.0" encoding="UTF-8" ?><xml><records>{"".join(records)}</records></xml>'.encode()


def endnote_record(abstract: str = "Salt helped.", more: str = "", number: int = 7) -> str:
    """One of them, with styles around its words."""
    face = 'face="normal" font="default" size="100%"'
    return (
        f'<record><database name="my.enl">my.enl</database><ref-type name="Journal Article">17</ref-type>'
        f'<rec-number>{number}</rec-number><titles><title><style {face}>Salt for </style><style face="italic">'
        "some</style></title><secondary-title><style>Notes on Salt</style></secondary-title></titles><dates><year>"
        f"<style {face}>2012</style></year><pub-dates><date><style>Jul 5</style></date></pub-dates></dates>"
        f"<abstract><style {face}>{abstract}</style></abstract>{more}</record>"
    )


ENDNOTE = endnote(
    endnote_record('Counts fell to 10</style><style face="superscript">9</style><style>/L in all.'),
    endnote_record("", number=8),
    endnote_record(
        more="<accession-num>403</accession-num><remote-database-name>PubMed</remote-database-name>"
        "<electronic-resource-num>10.1000/E3</electronic-resource-num><language>eng</language>",
        number=9,
    ),
)

BIB = rb"""% exported
@string{notes = "Notes on Salt"}
@article{salt2012,
  title = {Salt {and} W{\"a}ter},
  journal = notes,
  abstract = {Pain fell by 20% in adults & children ($p<0.05$), {\textless}5\,$\mu$g at 10$^{9}$/L.},
  year = 2012, month = jul, doi = {10.1000/b_1}, pmid = {501},
}
@article{none, title = {Nothing}}
@article{odd, title = {Odd}, abstract = {It was \foo{not} given.}}
@book{sand, title = "Sand", abstract = {Sand did not help.}, language = {english}}
"""

HTML = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>Salt | Journal</title>
<meta name="citation_title" content="Salt for some"><meta name="citation_pmid" content="601">
<meta name="citation_doi" content="10.1000/H1"><meta name="citation_publication_date" content="2012/07/05">
<script>var menu = "no text";</script></head><body><nav><a href="/">Home</a></nav>
<h1>Salt for some</h1><h2>Methods</h2><p>Half were given 5 µg of <b>salt</b> at 10<sup>9</sup>/L.<h3>Doses</h3>
<ul><li>One dose a day.</li><li>Two doses.</li></ul><table><tr><td>12</td><td>0.05</td></tr></table>
<h2>References</h2><p>1. Others. 2010.</p><footer>Contact</footer></body></html>""".encode()

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
#: of the parts of a file of Word's
WORDS_NAMES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": _WORD,
        "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
        "w16se": "http://schemas.microsoft.com/office/word/2015/wordml/symex",
        "x": "http://x.example/",
    }.items()
)


def docx(
    *paragraphs: tuple[str, str] | str, more: Mapping[str, bytes] | None = None, body: str = ""
) -> bytes:
    """A file of Word's: paragraphs, or their styles and texts; then other members, and raw XML of its body."""
    shown = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style.replace(" ", "")}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in (("Normal", p) if isinstance(p, str) else p for p in paragraphs)
    )
    names = ("Title", "Normal", *(f"heading {level}" for level in range(1, 4)))
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
        for name in names
    )
    package = "http://schemas.openxmlformats.org/package/2006"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    members: dict[str, bytes] = {
        "[Content_Types].xml": (
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kind}.document.main+xml"/>'
            f'<Override PartName="/word/styles.xml" ContentType="{kind}.styles+xml"/></Types>'
        ).encode(),
        "_rels/.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>'
        ).encode(),
        "word/_rels/document.xml.rels": (
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/styles" Target="styles.xml"/></Relationships>'
        ).encode(),
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>'.encode(),
        "word/document.xml": (
            f"<w:document {WORDS_NAMES}><w:body>{shown}{body}</w:body></w:document>"
        ).encode(),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (members | dict(more or {})).items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


DOCX = docx(
    ("Title", "Of salt"),
    ("heading 1", "Methods"),
    "Half were given 5 µg.",
    ("heading 2", "Doses"),
    "One a day.",
)

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

ZOTERO = (
    b'{"id": "zotero:OLDOLD22", "deleted": true}\n'
    b'{"id": "zotero:AAAA2222", "values": {"title": ["Salt"], "text": ["Salt helped."], "date": ["2012-07"]}}\n'
    b'{"id": "zotero:BBBB2222", "values": {"title": ["Sand"]}, "file": "gone.pdf"}\n'
)

#: text exports by their formats
_EXPORTS = {name: many(name, [b"Salt helped.", b"Sand did not."]) for name in MANY}

#: of every row of ``posology.corpus.files.KINDS``, by its name, whole files by their names
SAMPLES: dict[str, dict[str, bytes]] = {
    "jsonl": {"a.jsonl": _JSONL, "a.jsonl.gz": gzip.compress(_JSONL)},
    "clinicaltrials": {
        "a.json": json.dumps(STUDIES[0]).encode(),
        "b.json": json.dumps({"studies": STUDIES}).encode(),
        "a.json.gz": gzip.compress(json.dumps(STUDIES).encode()),
    },
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
    "endnote": {"a.xml": ENDNOTE, "a.xml.gz": gzip.compress(ENDNOTE)},
    "table": {
        "a.csv": CSV,
        "a.csv.gz": gzip.compress(CSV),
        "a.tsv": TSV,
        "b.tsv": TSV.decode().encode("utf-16"),
    },
    "web of science": {
        "savedrecs.txt": _EXPORTS["web of science"],
        "a.ciw.gz": gzip.compress(_EXPORTS["web of science"]),
    },
    "cochrane": {"citation-export.txt": _EXPORTS["cochrane"]},
    "ovid": {"a.ovd": _EXPORTS["ovid"], "citations.txt": _EXPORTS["ovid"]},
    "endnote text": {"a.enw": _EXPORTS["endnote text"]},
    "refworks": {"export.txt": _EXPORTS["refworks"]},
    "medline": {"a.nbib": NBIB, "pubmed-salt-set.txt": NBIB, "a.nbib.gz": gzip.compress(NBIB)},
    "ris": {"a.ris": RIS, "a.ris.gz": gzip.compress(RIS), "export.txt": RIS.partition(b"\n")[2]},
    "bibtex": {"a.bib": BIB, "a.bib.gz": gzip.compress(BIB)},
    "html": {
        "a.html": HTML,
        "a.htm": HTML.decode().encode("utf-16"),
        "a.html.gz": gzip.compress(HTML),
    },
    "word": {"a.docx": DOCX},
    "text": {"a.txt": _TEXT, "a.txt.gz": gzip.compress(_TEXT)},
    "zotero": {"a.zotero": ZOTERO},
    "pdf": {"a.pdf": pdf([["Salt helped in", "this trial. It was", "cheap."], ["So it ends."]])},
}
