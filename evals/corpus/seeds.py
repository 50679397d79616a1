"""What fuzzing begins with: small valid files of every format, and pieces that their formats are made of."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

PUBMED = b"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet SYSTEM "http://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">11</PMID>
<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print"><PubDate><MedlineDate>1998 Dec-1999
 Jan</MedlineDate></PubDate></JournalIssue><Title>Drawn words</Title></Journal>
<ArticleTitle>[One <i>and</i> 10<sup>9</sup>/L.]</ArticleTitle><ELocationID EIdType="doi">10.1000/A</ELocationID>
<Abstract><AbstractText Label="AIM">x &lt; 3 &#181;g <mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML">
<mml:msup><mml:mn>10</mml:mn><mml:mn>3</mml:mn></mml:msup></mml:math></AbstractText>
<AbstractText><![CDATA[a < b]]> and more.</AbstractText></Abstract><Language>eng</Language>
<DataBankList><DataBank><DataBankName>ClinicalTrials.gov</DataBankName><AccessionNumberList>
<AccessionNumber>NCT00000620</AccessionNumber></AccessionNumberList></DataBank></DataBankList>
<PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType></PublicationTypeList>
<ArticleDate DateType="Electronic"><Year>1998</Year><Month>12</Month><Day>09</Day></ArticleDate></Article>
<MedlineJournalInfo><MedlineTA>Words</MedlineTA></MedlineJournalInfo><CommentsCorrectionsList>
<CommentsCorrections RefType="RetractionOf"><RefSource>W</RefSource><PMID Version="1">12</PMID>
</CommentsCorrections></CommentsCorrectionsList><MeshHeadingList><MeshHeading><DescriptorName UI="D1">Humans
</DescriptorName></MeshHeading></MeshHeadingList></MedlineCitation></PubmedArticle>
<!-- between -->
<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="2">12</PMID><Article PubModel="Print">
<Journal><JournalIssue CitedMedium="Print"><PubDate><Year>2001</Year><Month>Feb</Month></PubDate></JournalIssue>
</Journal><ArticleTitle>Two</ArticleTitle><Language>eng</Language></Article></MedlineCitation></PubmedArticle>
<PubmedBookArticle><BookDocument><PMID Version="1">13</PMID><Book><BookTitle>B</BookTitle></Book><Abstract>
<AbstractText>Of a book.</AbstractText></Abstract></BookDocument></PubmedBookArticle>
<DeleteCitation><PMID Version="1">21</PMID><PMID Version="1">22</PMID></DeleteCitation>
</PubmedArticleSet>
"""

JATS = b"""<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) 1.3//EN" "JATS-archivearticle1-3.dtd">
<article xmlns:xlink="http://www.w3.org/1999/xlink" article-type="research-article" xml:lang="en"><front>
<journal-meta><journal-id journal-id-type="nlm-ta">Words</journal-id><journal-title-group><journal-title>Drawn
</journal-title></journal-title-group></journal-meta><article-meta><article-id pub-id-type="pmc">PMC70</article-id>
<article-id pub-id-type="pmid">71</article-id><article-id pub-id-type="doi">10.1000/b</article-id><title-group>
<article-title>Of <italic>words</italic></article-title></title-group><pub-date pub-type="epub"><day>5</day>
<month>7</month><year>2012</year></pub-date><related-article related-article-type="retracted-article"
 xlink:href="10.1000/c" ext-link-type="doi"/><abstract><sec><title>Aim</title><p>To draw 10<sup>9</sup>.</p></sec>
</abstract></article-meta></front><body><sec><title>Methods</title><p>We drew. We drew again
<xref ref-type="bibr">1</xref>.</p><sec><title>More</title><p>And again.</p><table-wrap><caption><p>Drawn.</p>
</caption></table-wrap></sec></sec></body><back><ref-list><ref id="r1"/></ref-list></back></article>
"""

JSONL = b"""{"id": "n:1", "text": "One. Two.", "title": "T", "pmid": "12", "year": 2001, "mesh": ["Humans"]}
{"id": "pubmed23n0001_0", "title": "T", "content": "Some words.", "contents": "T. Some words.", "PMID": 7}
{"id": "n:2", "text": ""}
"""

TEXT = b"A heading\n\nOne sentence. Another of 5 mg.\n\n\x0cOn the next page. It ends.\n" * 3

CSV = b"""PMID,Title,Abstract,Journal,Year,DOI
1,"Salt, and water","Salt helped ""some"".
Water did not.",Notes,2012,10.1000/a
2,Sand,[No abstract available],,,
"""

NBIB = b"""PMID- 1
DP  - 2012 Jul 5
TI  - [Salt
      and water].
LID - 10.1000/n1 [doi]
AB  - Salt helped.
RIN - N. 2013. PMID: 2
SI  - ClinicalTrials.gov/NCT00000620
MH  - *Salt/adverse effects
SO  - N. 2012.

PMID- 2
SO  - N. 2013.
"""

RIS = b"""TY  - JOUR
AN  - 1
DB  - MEDLINE
T1  - Salt
AB  - Salt helped.
Much.
Y1  - 2012/07//
ER  -

TY  - JOUR
N1  - PMID: 2
ER  -
"""

ENDNOTE = b"""<?xml version="1.0"?><xml><records><record><ref-type name="Journal Article">17</ref-type>
<rec-number>1</rec-number><titles><title><style face="normal">Salt</style></title></titles><dates><year>2012</year>
</dates><abstract><style>10</style><style face="superscript">9</style></abstract></record><record/></records></xml>
"""

BIB = rb"""@string{n = "Notes"}
@article{a, title={Salt {and} W{\"a}ter}, journal=n, abstract={20% of $p<0.05$, {\textless}5\,$\mu$g}, year=2012, month=jul}
@book{b, abstract="Sand."}
"""

HTML = b"""<html><head><meta charset="utf-8"><meta name="citation_pmid" content="1"><title>T</title></head><body><nav>x
</nav><h1>Salt</h1><h2>Methods</h2><p>Half at 10<sup>9</sup>/L.<ul><li>One<li>Two</ul><table><tr><td>1<td>2</table>
<h2>References</h2><p>1.</body></html>
"""


def _archive(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _pdf(text: str) -> bytes:
    stream = f"BT /F1 10 Tf 50 780 Td ({text}) Tj ET"
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{part}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 6\n0000000000 65535 f \n{table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{len(out)}\n"
    return out + end.encode() + b"%%EOF\n"


def _docx() -> bytes:
    space = b"http://schemas.openxmlformats.org"
    kind = space + b"/officeDocument/2006/relationships/officeDocument"
    w = b'xmlns:w="' + space + b'/wordprocessingml/2006/main"'
    m = b'xmlns:m="' + space + b'/officeDocument/2006/math"'
    parts = {
        "[Content_Types].xml": b'<Types xmlns="' + space + b'/package/2006/content-types">'
        b'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        b'<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        b'wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": b'<Relationships xmlns="' + space + b'/package/2006/relationships">'
        b'<Relationship Id="r1" Type="' + kind + b'" Target="word/document.xml"/></Relationships>',
        "word/document.xml": b"<w:document " + w + b" " + m + b"><w:body><w:p><w:r><w:t>Salt did </w:t></w:r><m:oMath><m:r><m:t>not"
        b'</m:t></m:r></m:oMath><w:del><w:r><w:delText>surely</w:delText></w:r></w:del><w:r><w:sym w:font="Symbol" w:char="F0B3"/>'
        b'</w:r><w:fldSimple w:instr="REF a"><w:r><w:t>2</w:t></w:r></w:fldSimple></w:p></w:body></w:document>',
    }  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


#: of every row of ``posology.corpus.files.KINDS`` that is not in :data:`MANY` alone, by its name
SEEDS: dict[str, tuple[bytes, ...]] = {
    "jsonl": (JSONL, gzip.compress(JSONL)),
    "pubmed": (PUBMED, gzip.compress(PUBMED)),
    "jats": (JATS, b"<pmc-articleset>" + JATS.split(b"\n", 2)[2] * 2 + b"</pmc-articleset>"),
    "jats archive": (
        _archive({"PMC/PMC70.nxml": JATS, "PMC/x.txt": b"x", "PMC/PMC1.nxml": b"<article>"}),
    ),
    "endnote": (ENDNOTE,),
    "table": (CSV, gzip.compress(CSV), CSV.decode().encode("utf-16")),
    "medline": (NBIB,),
    "ris": (RIS,),
    "bibtex": (BIB,),
    "html": (HTML, HTML.decode().encode("utf-16")),
    "text": (TEXT, gzip.compress(TEXT)),
    "word": (_docx(),),
    "pdf": (_pdf("Some words of a page. It ends here."),),
    "zotero": (b'{"id": "zotero:AAAA2222", "values": {"text": ["Salt helped."]}}\n',),
}

#: of each format with many records a file: what stands before them, a record with ``NN`` for its number and ``TEXT`` for its
#: abstract, and what stands behind them
MANY: dict[str, tuple[bytes, bytes, bytes]] = {
    "jsonl": (b"", b'{"id": "n:NN", "title": "Salt NN", "text": "TEXT", "year": 2001}\n', b""),
    "pubmed": (
        b'<?xml version="1.0"?>\n<PubmedArticleSet>\n',
        (
            b'<PubmedArticle><MedlineCitation><PMID Version="1">NN</PMID><Article><Journal><Title>Notes</Title></Journal>'
            b"<ArticleTitle>Salt NN</ArticleTitle><Abstract><AbstractText>TEXT</AbstractText></Abstract></Article>"
            b"</MedlineCitation></PubmedArticle>\n"
        ),
        b"</PubmedArticleSet>\n",
    ),
    "jats": (
        b"<pmc-articleset>\n",
        (
            b'<article article-type="research-article"><front><article-meta><article-id pub-id-type="pmid">NN</article-id>'
            b"<title-group><article-title>Salt NN</article-title></title-group><abstract><p>TEXT</p></abstract>"
            b"</article-meta></front></article>\n"
        ),
        b"</pmc-articleset>\n",
    ),
    "endnote": (
        b"<xml><records>",
        (
            b"<record><rec-number>NN</rec-number><titles><title>Salt NN</title></titles><abstract><style>TEXT</style></abstract>"
            b"<accession-num>NN</accession-num></record>"
        ),
        b"</records></xml>",
    ),
    "table": (b"PMID,Title,Abstract,Year\n", b'NN,"Salt NN","TEXT",2012\n', b""),
    "medline": (b"", b"PMID- NN\nTI  - Salt NN\nAB  - TEXT\nSO  - N. 2012.\n\n", b""),
    "ris": (b"", b"TY  - JOUR\nAN  - NN\nTI  - Salt NN\nAB  - TEXT\nER  - \n\n", b""),
    "bibtex": (
        b"",
        b"@article{aNN,\n  title = {Salt NN},\n  abstract = {TEXT},\n  pmid = {NN}\n}\n\n",
        b"",
    ),
    "web of science": (
        b"FN Clarivate Analytics Web of Science\nVR 1.0\n",
        b"PT J\nTI Salt NN\nAB TEXT\nPY 2012\nUT WOS:0000NN\nER\n\n",
        b"EF\n",
    ),
    "cochrane": (
        b"",
        b"Record #NN of 5\nID: CN-0000NN\nTI: Salt NN\nSO: Notes\nYR: 2012\nAB: TEXT\n\n\n",
        b"",
    ),
    "ovid": (
        b"",
        b"<NN>\nUnique Identifier\n  NN\nTitle\n  Salt NN\nAbstract\n  TEXT\nYear of Publication\n  2012\n\n",
        b"",
    ),
    "endnote text": (b"", b"%0 Journal Article\n%T Salt NN\n%D 2012\n%X TEXT\n%M NN\n\n", b""),
    "refworks": (b"", b"RT Journal Article\nID NN\nT1 Salt NN\nYR 2012\nAB TEXT\n\n", b""),
}
#: what one record's abstract may hold that no other may suffer from
NOISE: tuple[bytes, ...] = (
    b"\0", b"\x01", b"\x0b", b"\x0c", b"\x1a", b"\x1c", b"\x7f", b"\xff", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80",
    b"\r", b"\n", b"\r\n", b"\n\n", b"\n\n\n", b"\t", b'"', b'""', b"'", b",", b";", b"{", b"}", b"\\", b"\\u12", b"%", b"$", b"~", b"@",
    b"<", b">", b"&", b"&nbsp;", b"&#1;", b"&#x0;", b"&b;", b"<i>", b"</i>", b"<p>", b"</p>", b"<sup>2", b"p < 0.05", b"<!--", b"-->",
    b"<![CDATA[", b"]]>", b"<?x", b"?>", b"</AbstractText>", b"</Abstract>", b"</PubmedArticle>", b"</PubmedArticleSet>", b"</article>", b"</record>", b"</style>",
    b"\nER  - ", b"\nTY  - JOUR", b"\nPMID- ", b"\nPT J", b"\nER", b"\nRecord #3 of 5", b"\n<3>\n", b"\n<3>\n\nER  - ", b"\n%0 ", b"\nRT ", b"\n@article{", b"\n@",
)  # fmt: skip


#: pieces that are put in
PIECES: dict[str, tuple[bytes, ...]] = {
    "xml": (
        b"<PubmedArticle>", b"</PubmedArticle>", b"<PubmedArticleSet>", b"</PubmedArticleSet>", b"<PubmedArticle/>",
        b"<DeleteCitation>", b"</DeleteCitation>", b"<PMID>3</PMID>", b'<PMID Version="3">11</PMID>', b"<!--",
        b"-->", b"<![CDATA[", b"]]>", b"<?", b"?>", b"<!ENTITY a 'b'>", b"&a;", b"&#x1;", b"&#65;", b"&nbsp;",
        b"<article>", b"</article>", b"<sec>", b"</sec>", b"<p>", b"</p>", b"<body>", b"</body>", b"<sup>2</sup>",
        b"<AbstractText>", b"</AbstractText>", b"<Abstract>", b"</Abstract>", b"<mml:math>", b"<Year>9999</Year>",
        b"<MedlineDate>", b"encoding='utf-16'", b"encoding='latin1'", b"xmlns='x'", b"RetractionIn",
    ),
    "json": (b'{"id": "x", "text": "y"}', b"\n", b'"id"', b'"text"', b"null", b"[]", b"{", b"}", b'\\ud800', b"1e999"),
    "bytes": (b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\r\n", b"\x0c", b"\xc2\xa0", b"<", b">", b"%"),
}  # fmt: skip
