"""Files of articles: sets, archives, and what is broken or hostile in them."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from posology.corpus.files import KINDS, kind_of
from posology.corpus.items import Parts, Record, Remark
from posology.corpus.jats import reader as jats
from posology.errors import BadFile, BadRecord
from tests.support.growth import MOST, growth
from tests.support.literature import archive, article_set, words
from tests.support.literature import jats as article
from tests.unit.corpus.jats.reading import items, passages, text


@pytest.mark.parametrize(
    "markup",
    [
        lambda n: "<sup/>" * n,
        lambda n: (
            f"<tex-math>{chr(92)}begin{{document}}{chr(92) + 'begin{document}' * n}</tex-math>"
        ),
    ],
)
def test_hostile_markup_takes_time_in_proportion(
    tmp_path: Path, markup: Callable[[int], str]
) -> None:
    def read(n: int) -> None:
        assert text(tmp_path, f"so {markup(n)} it was").startswith("so ")

    assert growth(read, 10_000) < MOST


def test_an_identifier_that_never_ends_takes_time_in_proportion(tmp_path: Path) -> None:
    def read(n: int) -> None:
        torn = "<article><article-id " + 'pmid"' * n
        found = items(tmp_path, article_set(torn, article()))
        assert isinstance(found[0], BadRecord | BadFile)

    assert growth(read, 50_000) < MOST


def test_entities_of_the_dtd_are_characters_and_others_are_said(tmp_path: Path) -> None:
    xml = '<!DOCTYPE article SYSTEM "JATS.dtd">' + article(
        "<body><p>5 &micro;g &alpha;-salt &mgr; &PSgr; &amp; &nonesuch;.</p></body>", meta=""
    )
    record, _, bad = items(tmp_path, xml)
    assert isinstance(record, Record)
    assert record.passage.text == "5 µg α-salt μ Ψ & \ufffd."
    assert isinstance(bad, Remark)
    assert "name is not known" in bad.reason


def test_entities_are_never_expanded_or_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOP SECRET")
    bomb = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha" * 100}">' for i in range(9))
    for body in ("&l8;", "&file;"):
        xml = f'<!DOCTYPE article [{bomb}<!ENTITY file SYSTEM "{secret.as_uri()}">]>' + article(
            f"<body><p>Before {body} after.</p></body>", meta=""
        )
        for item in items(tmp_path, xml):
            assert "haha" not in str(item)
            assert "TOP SECRET" not in str(item)


def test_namespaces_do_not_hide_anything(tmp_path: Path) -> None:
    xml = article().replace("<article ", '<article xmlns="https://jats.nlm.nih.gov/ns/a" ')
    oai = f'<OAI-PMH xmlns="http://o.example"><record><metadata>{xml}</metadata></record></OAI-PMH>'
    path = tmp_path / "a.xml"
    path.write_text(oai)
    kind = kind_of(path)
    assert kind is not None
    assert kind.name == "jats"
    assert passages(tmp_path, oai) == passages(tmp_path, article())


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_articles_before_a_break_are_kept(tmp_path: Path, cut: float) -> None:
    articles = [article(ids={"pmc": str(i)}) for i in range(1, 201)]
    content = article_set(*articles)
    broken = content[: int(len(content) * cut)]
    for name, packed in (("a.nxml", broken), ("a.nxml.gz", gzip.compress(content)[:-4])):
        *found, last = items(tmp_path, packed, name)
        assert isinstance(last, BadFile)
        whole = sum(isinstance(item, Parts) for item in found)
        assert whole == (broken.count(b"</article>") if name == "a.nxml" else 200)


@pytest.mark.parametrize("size", [10, 3_000])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("</p>", "</q>"),
        ("</article>", ""),
        ("</body>", "<"),
        ("<article ", "<article lang=en "),
        ("salt", "s<lt; &#0;"),
        ("</p>", "</p></sec></sec></body></article></pmc-articleset>"),
    ],
)
def test_a_broken_article_of_a_set_costs_that_one(
    tmp_path: Path, old: str, new: str, size: int
) -> None:
    """Whether they stand in one piece of the file that is read, or in many."""
    long = f"<body><p>Half of them were given salt.</p><p>{words(size)}</p></body>"
    made = [article(long, ids={"pmc": str(i), "doi": "10.1000/x"}) for i in range(1, 21)]
    made[4] = made[4].replace(old, new, 1)
    made[12] = made[12].replace(old, new, 1)
    found = items(tmp_path, article_set(*made))
    whole = [item.id for item in found if isinstance(item, Parts)]
    assert whole == [f"pmcid:PMC{i}" for i in range(1, 21) if i not in (5, 13)]
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert [item.record for item in bad] == ["pmcid:PMC5", "pmcid:PMC13"]
    torn = "is not closed before the next begins" if not new else "no valid XML: "
    assert all(item.reason.startswith(torn) for item in bad)
    assert not any(isinstance(item, BadFile) for item in found)


def test_named_characters_are_read_behind_a_broken_article_too(tmp_path: Path) -> None:
    one = article("<body><p>&alpha;</q></body>", ids={"pmc": "1"}, meta="")
    two = article("<body><p>5 &micro;g</p></body>", ids={"pmc": "2"}, meta="")
    head = b'<!DOCTYPE pmc-articleset SYSTEM "a.dtd">'
    bad, record, _ = items(tmp_path, head + article_set(one, two).split(b"?>")[1])
    assert isinstance(bad, BadRecord)
    assert isinstance(record, Record)
    assert record.passage.text == "5 µg"


def test_the_last_article_of_a_set_costs_itself_if_the_file_is_whole(tmp_path: Path) -> None:
    one, two = (article(ids={"pmc": str(i)}) for i in (1, 2))
    whole = article_set(one, two.replace("</p>", "</q>"))
    for content, kind in ((whole, BadRecord), (whole[:-20], BadFile)):
        *found, last = items(tmp_path, content)
        assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1"]
        assert isinstance(last, kind)
        assert last.reason.startswith("no valid XML: Opening and ending tag mismatch")
    assert items(tmp_path, gzip.compress(whole)[:-4])[-1].reason  # type: ignore[union-attr]  # it is bad


@pytest.mark.parametrize("written", ["\v", "&#11;", "&#x1F;"])
def test_a_forbidden_character_costs_its_article_and_is_named_with_its_place(
    tmp_path: Path, written: str
) -> None:
    number = 31 if "F" in written else 11
    body = f"<body>\n<p>Salt was{written} given.</p>\n</body>"
    articles = [article(body if i % 2 else "<body/>", ids={"pmc": str(i)}) for i in range(1, 6)]
    found = items(tmp_path, article_set("\n".join(articles)))
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC2", "pmcid:PMC4"]
    assert [(item.record, item.reason) for item in found if isinstance(item, BadRecord)] == [
        (
            f"pmcid:PMC{i}",
            (
                f"no valid XML: holds the character U+{number:04X}, which XML forbids, in line {line}, "
                "after “Salt was”"
            ),
        )
        for i, line in ((1, 2), (3, 6), (5, 10))
    ]
    (alone,) = items(tmp_path, articles[0])
    assert isinstance(alone, BadRecord)


def test_documents_that_were_put_together_are_all_read(tmp_path: Path) -> None:
    articles = [f'<?xml version="1.0"?>\n{article(ids={"pmc": str(i)})}\n' for i in range(1, 5)]
    found = items(tmp_path, "".join(articles))
    assert [item.id for item in found if isinstance(item, Parts)] == [
        f"pmcid:PMC{i}" for i in range(1, 5)
    ]
    assert not any(isinstance(item, Remark | BadRecord | BadFile) for item in found)
    *_, last = items(tmp_path, articles[0] + "and more")
    assert isinstance(last, BadFile)


def test_what_is_wrong_before_an_article_does_not_cost_it(tmp_path: Path) -> None:
    found = items(tmp_path, article_set("<note>\v</note>", article(ids={"pmc": "1"})))
    assert isinstance(found[0], BadRecord)
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1"]


def test_space_between_documents_takes_time_in_proportion(tmp_path: Path) -> None:
    def read(n: int) -> None:
        found = items(tmp_path, f"{article()}{' ' * n}and{article(ids={'pmc': '1'})}")
        assert any(isinstance(item, BadRecord) for item in found)

    assert growth(read, 5_000) < MOST


def test_an_article_beyond_the_bound_ends_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posology.corpus.jats.stream.LONGEST", 200_000)
    long = article(f"<body><p>{words(60_000)}</p></body>")
    *found, last = items(tmp_path, article_set(article(), long))
    assert len(found) == 3
    assert isinstance(last, BadFile)
    assert last.reason == "an article of more than 200,000 bytes"


def test_what_an_unclosed_piece_swallows_is_read_all_the_same(tmp_path: Path) -> None:
    made = [article(ids={"pmc": str(i)}) for i in range(1, 5)]
    made[1] = made[1].replace("<body>", "<body><![CDATA[")
    found = items(tmp_path, article_set(*made))
    bad = [item.record for item in found if isinstance(item, BadRecord)]
    whole = [item.id for item in found if isinstance(item, Parts)]
    assert (bad, whole) == (["pmcid:PMC2"], ["pmcid:PMC1", "pmcid:PMC3", "pmcid:PMC4"])


def test_broken_articles_without_end_end_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posology.corpus.jats.stream.TWICE", 100_000)
    *found, last = items(tmp_path, article_set(*["<article><![CDATA["] * 2_000))
    assert {item.reason for item in found if isinstance(item, BadRecord)} == {
        "no valid XML: CData section not finished, in line 1"
    }
    assert isinstance(last, BadFile)
    assert last.reason == "more than 100,000 bytes of broken articles"


def test_xml_of_another_kind_is_a_bad_file(tmp_path: Path) -> None:
    (bad,) = items(tmp_path, "<html/>")
    assert isinstance(bad, BadFile)
    assert bad.reason == "holds no <article>"


def test_an_archive_is_read_member_by_member(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar.gz"
    path.write_bytes(
        archive(
            {
                "x/PMC1.xml": article(ids={"pmc": "1"}).encode(),
                "x/broken\n.xml": b"<article><front>",
                "x/fig.jpg": b"\xff\xd8",
                "x/PMC2.nxml": article(ids={"pmc": "2"}).encode(),
            }
        )
    )
    found = list(jats.read_archive(path))
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1", "pmcid:PMC2"]
    (bad,) = [item for item in found if isinstance(item, BadRecord)]
    assert bad.record == "x/broken\ufffd.xml"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["oa.tar.gz"]


def header(kind: bytes, size: int, name: str = "x") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.USTAR_FORMAT)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g", b"X"])
def test_a_header_is_not_read_into_memory_whatever_its_size(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "oa.tar.gz"
    good = archive({"PMC1.xml": article(ids={"pmc": "1"}).encode()}, "w")
    member = good[: 512 + -(-int(good[124:135], 8) // 512) * 512]
    with gzip.open(path, "wb", compresslevel=1) as out:
        out.write(member + header(kind, 64 * 1024**2))
        for _ in range(64):
            out.write(bytes(1024**2))
    tracemalloc.start()
    try:
        found = list(jats.read_archive(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # what came before is read
    assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1"]
    (bad,) = [item for item in found if isinstance(item, BadFile)]
    assert "67,108,864" in bad.reason
    assert peak < 16 * 1024**2


def test_headers_without_end_and_sparse_members_are_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar"
    name = padded(b"a" * 600)
    path.write_bytes((header(b"L", 600) + name) * 2_000)
    (bad,) = jats.read_archive(path)
    assert isinstance(bad, BadFile)
    path.write_bytes(header(b"S", 0))
    (bad,) = jats.read_archive(path)
    assert isinstance(bad, BadFile)
    assert "sparse" in bad.reason
    records = b"".join(
        b"%d %s\n" % (len(one) + 4, one) for one in (b"GNU.sparse.major=1", b"GNU.sparse.minor=0")
    )
    path.write_bytes(
        header(b"x", len(records))
        + padded(records)
        + header(b"0", 512)
        + padded(b"999999999\n" + b"1\n" * 200)
    )
    (bad,) = jats.read_archive(path)
    assert isinstance(bad, BadFile)
    assert "sparse" in bad.reason


def test_long_names_are_read(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar"
    name = f"{'long/' * 60}PMC1.xml"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        data = article(ids={"pmc": "1"}).encode()
        with tarfile.open(path, "w", format=form) as out:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
        found = list(jats.read_archive(path))
        assert [item.id for item in found if isinstance(item, Parts)] == ["pmcid:PMC1"]
        assert not [item for item in found if isinstance(item, Remark | BadFile | BadRecord)]


def test_an_archive_without_articles_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "oa.tar"
    path.write_bytes(archive({"a.jpg": b"x"}, "w"))
    (bad,) = jats.read_archive(path)
    assert isinstance(bad, BadFile)
    assert bad.reason == "the archive holds no file of .xml or .nxml"


def test_every_suffix_leads_to_its_reader(tmp_path: Path) -> None:
    for name in ("A.NXML", "a.xml", "a.nxml.gz", "a.xml.gz"):
        path = tmp_path / name
        path.write_bytes(article().encode())
        kind = kind_of(path)
        assert kind is not None
        assert kind.name == "jats"
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
