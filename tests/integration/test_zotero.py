"""``zotero:…`` as a path of an ingest, against a stub of Zotero's APIs on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.ingest.libraries import add_note
from orchestrator.ingest.zotero import mirrored
from orchestrator.settings import load_settings
from posology.corpus.zotero import wire
from posology.errors import ConfigurationError, FetchFailed, InputError, PosologyError
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress, IngestReport, Tally
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder
from tests.support.literature import pdf
from tests.support.zotero import KEY, Reply, ZoteroStub

PDF = pdf([["Salt helped in", "this trial. It was", "cheap."], ["So it ends."]])
HTML = b"<html><body><h1>Sand</h1><p>Sand was given to forty of them, and it hurt none.</p></body></html>"


class Desk:
    """A user's machine: settings, an index, and lines that were shown."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place = folder / "index"
        self.home = folder / "home"
        self.said: list[str] = []
        self.set = monkeypatch.setenv
        self.set("POSOLOGY_HOME", str(self.home))
        self.set("POSOLOGY_ZOTERO_LOCAL_URL", "off")
        self.set("POSOLOGY_ZOTERO_KEY", KEY)

    def ingest(
        self,
        source: str = "zotero:",
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestReport:
        with mirrored([Path(source)], load_settings(), str(self.place), self.said.append) as given:
            report = Tally().report(files=0)
            if given.paths:
                embedder = HashEmbedder(dim=16)
                index = Index.open_or_create(str(self.place), embedder.name, embedder.dim)
                rows = RowSource(embedder=embedder, batch=10)
                report = ingest(given.paths, index, rows, progress=progress)
            given.applied()
        return report

    @property
    def ids(self) -> list[str]:
        return sorted(Index.open(self.place).newest().ids())

    def left(self) -> list[str]:
        """Files of changes that are kept."""
        found = (one for one in self.home.rglob("*") if one.is_file() or one.is_symlink())
        return [one.name for one in found if one.suffix not in (".json", ".lock")]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


@pytest.fixture
def web(desk: Desk) -> Iterator[ZoteroStub]:
    with serving(ZoteroStub(), desk) as stub:
        yield stub


class serving:  # noqa: N801 - a context manager
    def __init__(self, stub: ZoteroStub, desk: Desk) -> None:
        self._stub, self._desk, self._stack = stub, desk, ExitStack()

    def __enter__(self) -> ZoteroStub:
        url = self._stack.enter_context(self._stub.serving())
        self._desk.set(
            "POSOLOGY_ZOTERO_LOCAL_URL" if self._stub.local else "POSOLOGY_ZOTERO_URL", url
        )
        return self._stub

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def fill(stub: ZoteroStub, count: int = 3) -> None:
    for i in range(count):
        stub.put(
            f"ITEM{i:04}",
            title=f"Trial {i}",
            abstractNote=f"Salt was given to {i + 2} patients. It helped.",
            creators=[{"creatorType": "author", "firstName": "Ann", "lastName": "Salter"}],
            date="July 2012",
            extra=f"PMID: {1000 + i}\nmy own words",
            DOI=f"10.1000/T{i}",
            publicationTitle="Notes on Salt",
            dateAdded=f"2026-01-01T00:{i // 60 % 60:02}:{i % 60:02}Z",
        )


def test_items_come_once_and_then_only_their_changes(desk: Desk, web: ZoteroStub) -> None:
    fill(web)
    web.put("NOTE0001", itemType="note", parentItem="ITEM0000", note="private")
    web.put("BOOK0001", itemType="book", title="No abstract")
    assert desk.ingest().written == 3
    (found,) = Index.open(desk.place).fetch(["zotero:ITEM0001"])
    passage = found.passage
    assert (passage.title, passage.pmid, passage.doi) == ("Trial 1", "1001", "10.1000/t1")
    assert (passage.journal, passage.year, passage.authors) == (
        "Notes on Salt",
        2012,
        ("Salter, Ann",),
    )
    assert passage.source == "zotero"
    assert not any("private" in one.read_text() for one in desk.home.rglob("*.json"))
    before = len(web.seen)
    assert desk.ingest().files == 0
    assert web.seen[before:] == ["/keys/current", "/items"]
    web.put("ITEM0001", abstractNote="Sand was given. It helped none.")
    report = desk.ingest()
    assert (report.written, report.files) == (1, 1)
    assert "Sand" in Index.open(desk.place).fetch(["zotero:ITEM0001"])[0].passage.text
    web.drop("ITEM0000")
    web.put("ITEM0002", deleted=1)
    assert desk.ingest().removed == 2
    assert desk.ids == ["zotero:ITEM0001"]
    web.put("ITEM0002", deleted=0)
    desk.ingest()
    assert desk.ids == ["zotero:ITEM0001", "zotero:ITEM0002"]
    assert desk.left() == []


def test_a_collection_has_those_in_it_and_loses_what_is_moved(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 5)
    web.collect("COLL0001", "Salt")
    web.collect("COLL0002", "Deeper", parent="COLL0001")
    web.collect("COLL0003", "Other")
    for item, key in (("ITEM0000", "COLL0001"), ("ITEM0001", "COLL0002"), ("ITEM0002", "COLL0003")):
        web.put(item, collections=[key])
    desk.ingest("zotero:Salt")
    assert desk.ids == ["zotero:ITEM0000", "zotero:ITEM0001"]
    desk.ingest("zotero:COLL0003")
    web.put("ITEM0000", collections=["COLL0003"])
    web.put("ITEM0001", collections=[])
    desk.ingest("zotero:COLL0001")
    # it is in another collection that was ingested
    assert desk.ids == ["zotero:ITEM0000", "zotero:ITEM0002"]
    web.collect("COLL0004", "Other")
    with pytest.raises(InputError, match=r"COLL0003, COLL0004"):
        desk.ingest("zotero:Other")
    with pytest.raises(InputError, match="no collection 'Sugar'; there are Deeper, Other, Salt"):
        desk.ingest("zotero:Sugar")


def test_a_collection_that_is_moved_away_takes_its_items(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 1)
    web.collect("COLL0001", "Salt")
    web.collect("COLL0002", "Deeper", parent="COLL0001")
    web.put("ITEM0000", collections=["COLL0002"])
    desk.ingest("zotero:Salt")
    assert desk.ids == ["zotero:ITEM0000"]
    web.collect("COLL0002", "Deeper")
    assert desk.ingest("zotero:Salt").removed == 1


def test_attachments_are_the_full_text_of_their_items(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 4)
    web.attach("FILE0000", "ITEM0000", HTML, "text/html", dateAdded="2020")
    web.attach("FILE0001", "ITEM0000", PDF, dateAdded="2021")
    web.attach("FILE0002", "ITEM0001", HTML, "text/html")
    web.attach("FILE0003", "ITEM0002", b"%PDF-1.4 no more")
    web.attach("FILE0004", None, PDF)
    web.attach("FILE0005", "ITEM0003", PDF)
    del web.files["FILE0005"]  # kept elsewhere, by WebDAV
    report = desk.ingest()
    assert desk.ids == [
        "zotero:FILE0004#1", "zotero:ITEM0000#1", "zotero:ITEM0001#1", "zotero:ITEM0002", "zotero:ITEM0003",
    ]  # fmt: skip
    assert ["FILE0003" in str(one) for one in report.remarks] == [True]
    assert report.bad == 0
    first, second = Index.open(desk.place).fetch(["zotero:ITEM0000#1", "zotero:ITEM0001#1"])
    assert (first.passage.title, first.passage.pmid, first.passage.page) == ("Trial 0", "1000", 1)
    assert first.passage.parent == "zotero:ITEM0000"
    assert "forty" in second.passage.text
    # the storage is not given the key
    assert {key for path, key in zip(web.seen, web.keys, strict=True) if "storage" in path} == {
        None
    }
    assert any("1 attachments have no file there" in line for line in desk.said)
    assert desk.left() == []
    assert desk.ingest().files == 0
    web.drop("FILE0002")
    desk.ingest()
    assert "zotero:ITEM0001" in desk.ids
    assert "zotero:ITEM0001#1" not in desk.ids


def test_an_abstract_gives_way_to_an_attachment(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 1)
    desk.ingest()
    web.attach("FILE0000", "ITEM0000", PDF)
    web.packed.add("FILE0000")
    desk.ingest()
    assert desk.ids == ["zotero:ITEM0000#1"]


def test_an_attachment_that_becomes_unreadable_gives_way_to_the_abstract(
    desk: Desk, web: ZoteroStub
) -> None:
    fill(web, 2)
    web.attach("FILE0000", "ITEM0000", HTML, "text/html")
    desk.ingest()
    assert desk.ids == ["zotero:ITEM0000#1", "zotero:ITEM0001"]
    web.attach("FILE0001", "ITEM0000", b"%PDF-1.4 no more")
    desk.ingest()
    assert desk.ids == ["zotero:ITEM0000", "zotero:ITEM0001"]


def test_an_interrupted_ingest_goes_on(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 30)
    web.attach("FILE0000", "ITEM0000", PDF)

    def crash(now: IngestProgress) -> None:
        raise KeyboardInterrupt

    # in the middle of the attachments, of the index, and behind it
    web.faults[3] = Reply(status=500)
    web.faults[4] = Reply(status=400)
    with pytest.raises(PosologyError):
        desk.ingest()
    with pytest.raises(KeyboardInterrupt):
        desk.ingest(progress=crash)
    fetched = sum("storage" in path for path in web.seen)
    web.put("ITEM0029", abstractNote="Meanwhile it changed.")
    web.drop("ITEM0028")
    report = desk.ingest()
    assert sum("storage" in path for path in web.seen) == fetched == 1
    assert report.written + report.unchanged == 29
    assert len(desk.ids) == 29
    assert desk.ingest().files == 0


def test_an_index_that_was_made_anew_gets_everything(desk: Desk, web: ZoteroStub) -> None:
    fill(web)
    desk.ingest()
    desk.place = desk.place.rename(desk.place.with_name("moved"))
    assert desk.ingest().unchanged == 3  # to this folder for the first time
    Index.open(desk.place).delete(["zotero:ITEM0001"])
    Index.open(desk.place).publish()
    assert desk.ingest().written == 1


def test_five_thousand_items_come_in_pages(desk: Desk, web: ZoteroStub) -> None:
    fill(web, 5_000)
    with mirrored([Path("zotero:")], load_settings(), str(desk.place), desk.said.append) as given:
        assert len(given.paths) == 100
    assert web.seen.count("/items") == 50
    assert "5,000 items with a text, 5,000 new" in desk.said[0]


def test_a_library_that_changes_while_it_is_read_is_read_again(
    desk: Desk, web: ZoteroStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(web, 150)
    answer, moved = web.answer, iter(range(20))

    def moving(path: str, form: dict[str, str], headers: dict[str, str]) -> Reply:
        if form.get("start") == "100" and next(moved) < limit:
            web.drop(next(iter(web.items)))
        return answer(path, form, headers)

    monkeypatch.setattr(web, "answer", moving)
    limit = 1
    desk.ingest()
    assert len(desk.ids) == 149
    limit = 20
    desk.home = desk.home.with_name("new")
    desk.set("POSOLOGY_HOME", str(desk.home))
    with pytest.raises(FetchFailed, match="changed while it was read"):
        desk.ingest()


@pytest.mark.parametrize("status", [429, 503, 200])
def test_waits_are_heeded(
    desk: Desk, web: ZoteroStub, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    fill(web)
    slept: list[float] = []
    monkeypatch.setattr(
        wire.Patient.__init__, "__kwdefaults__", {"sleep": slept.append, "clock": lambda: 0.0}
    )
    header = "Backoff" if status == 200 else "Retry-After"
    body = {"userID": 4711} if status == 200 else None
    web.faults[1] = Reply(status=status, headers={header: "7"}, body=body)
    desk.ingest()
    assert slept[0] == 7
    web.faults[len(web.seen) + 1] = Reply(status=429, headers={"Retry-After": "86400"})
    with pytest.raises(FetchFailed, match="86,400 s"):
        desk.ingest()


def test_a_group_and_the_local_api(desk: Desk, tmp_path: Path) -> None:
    with serving(ZoteroStub("groups/99"), desk) as stub:
        fill(stub, 1)
        desk.ingest("zotero:group/99")
        assert desk.ids == ["zotero:groups/99/ITEM0000"]
        with pytest.raises(FetchFailed, match="404"):
            desk.ingest("zotero:group/98")
        with pytest.raises(InputError, match="group/ID"):
            desk.ingest("zotero:group/mine")
    paper = tmp_path / "a paper.pdf"
    paper.write_bytes(PDF)
    with serving(ZoteroStub(local=True), desk) as stub:
        fill(stub, 2)
        stub.attach("FILE0000", "ITEM0000", paper, linkMode="linked_file")
        stub.attach("FILE0001", "ITEM0001", tmp_path / "gone.pdf")
        desk.ingest()
        assert set(stub.keys) == {None}
        mine = {"zotero:ITEM0000#1", "zotero:ITEM0001"}
        assert set(desk.ids) == mine | {"zotero:groups/99/ITEM0000"}
        stub.files["FILE0001"] = paper
        # Zotero deletes and edits without a new version before it synchronises
        del stub.items["ITEM0000"], stub.items["FILE0000"]
        desk.ingest()
        assert set(desk.ids) == {"zotero:ITEM0001#1", "zotero:groups/99/ITEM0000"}
    assert paper.read_bytes() == PDF


def test_a_file_of_this_machine_that_is_edited_is_read_again(desk: Desk, tmp_path: Path) -> None:
    """Zotero does not say of a linked file that it has changed."""
    paper = tmp_path / "a paper.pdf"
    paper.write_bytes(PDF)
    with serving(ZoteroStub(local=True), desk) as stub:
        fill(stub, 2)
        stub.attach("FILE0000", "ITEM0000", paper, linkMode="linked_file")
        desk.ingest()
        assert desk.ingest().files == 0
        paper.write_bytes(pdf([["Sand helped in", "another trial."]]))
        assert desk.ingest().written == 1
        (found,) = Index.open(desk.place).newest().fetch(["zotero:ITEM0000#1"])
        assert "Sand helped" in found.passage.text
        assert desk.ingest().files == 0
        # a drive that is not there now
        paper.rename(tmp_path / "away")
        assert desk.ingest().files == 0
        (tmp_path / "away").rename(paper)
        assert desk.ingest().files == 0
        # committed, but not noted as such, and edited meanwhile
        states = list(desk.home.rglob("index.json"))
        before = [one.read_text() for one in states]
        paper.write_bytes(pdf([["Silt helped in", "a third trial."]]))
        desk.ingest()
        for state, text in zip(states, before, strict=True):
            state.write_text(text)
        paper.write_bytes(pdf([["Clay helped in", "a third trial."]]))
        desk.ingest()
        (found,) = Index.open(desk.place).newest().fetch(["zotero:ITEM0000#1"])
        assert "Clay helped" in found.passage.text


def test_no_key_a_wrong_key_and_no_zotero(desk: Desk, web: ZoteroStub) -> None:
    desk.set("POSOLOGY_ZOTERO_KEY", "wrongSecret")
    with pytest.raises(FetchFailed, match="key is not valid") as caught:
        desk.ingest()
    assert "wrongSecret" not in repr(caught.value.__dict__) + str(caught.value)
    desk.set("POSOLOGY_ZOTERO_KEY", "")
    with pytest.raises(ConfigurationError, match="does not run on this machine"):
        desk.ingest()
    desk.set("POSOLOGY_ZOTERO_LOCAL_URL", "http://127.0.0.1:9/api")
    with pytest.raises(ConfigurationError, match="does not run on this machine"):
        desk.ingest()
    desk.set("POSOLOGY_ZOTERO_LOCAL_URL", "http://example.org/api")
    with pytest.raises(ConfigurationError, match="of this machine"):
        desk.ingest()


def test_a_file_leads_to_no_other_place(desk: Desk, web: ZoteroStub, tmp_path: Path) -> None:
    fill(web, 1)
    secret = tmp_path / "secret.pdf"
    secret.write_bytes(PDF)
    web.attach("FILE0000", "ITEM0000", secret)
    with pytest.raises(FetchFailed, match="not https"):
        desk.ingest()
    web.faults[len(web.seen) + 3] = Reply(status=302, headers={"Location": "http://10.0.0.1/x"})
    with pytest.raises(FetchFailed, match="not https"):
        desk.ingest()


def test_hostile_contents_stay_text(desk: Desk, web: ZoteroStub) -> None:
    web.put("ITEM0001", title="A\x00\x1b[31m\u202eB\ntitle", abstractNote="Salt helped. " * 20_000)
    web.put("ITEM0002", title="Long", abstractNote="x" * 11_000_000)
    web.put("../../x", title="No key", abstractNote="Salt helped.")
    web.put("ITEM0003", title={"no": "text"}, abstractNote=["no text"], creators="none")
    web.put(
        "ITEM0004", title="Last", abstractNote="Sand helped none.", creators=[None, {"lastName": 3}]
    )
    desk.ingest()
    assert "zotero:ITEM0004" in desk.ids
    assert "zotero:ITEM0001#1" in desk.ids
    assert {one.partition("#")[0] for one in desk.ids} == {"zotero:ITEM0001", "zotero:ITEM0004"}
    title = Index.open(desk.place).fetch(["zotero:ITEM0001#1"])[0].passage.title
    assert not {"\x1b", "\n", "\0"} & set(title)


@pytest.mark.parametrize("body", [b"<html>", {"a": 1}, [1, None, {}], b""])
def test_replies_of_another_form_are_errors(desk: Desk, web: ZoteroStub, body: object) -> None:
    web.faults[2] = Reply(body=body)
    with pytest.raises(FetchFailed):
        desk.ingest()


def test_the_command(desk: Desk, web: ZoteroStub) -> None:
    desk.set("POSOLOGY_EMBEDDER_BACKEND", "torch")
    fill(web)
    arguments = ["ingest", "zotero:", "--index", str(desk.place), "--json"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert json.loads(first.stdout)["written"] == 3
    again = CliRunner().invoke(app, arguments)
    assert json.loads(again.stdout)["good"] == 0
    asked = CliRunner().invoke(app, ["ask", "Did salt help?", "--index", str(desk.place), "--json"])
    assert json.loads(asked.stdout)["evidence"][0]["passage"]["id"].startswith("zotero:ITEM")
    assert KEY not in first.output + again.output + asked.output


def test_an_answer_becomes_a_note(desk: Desk, web: ZoteroStub, tmp_path: Path) -> None:
    desk.set("POSOLOGY_EMBEDDER_BACKEND", "torch")
    fill(web)
    web.collect("COLL0001", "Salt <b>")
    run = CliRunner()
    assert run.invoke(app, ["ingest", "zotero:", "--index", str(desk.place)]).exit_code == 0
    question = "Did <salt> help?"
    asked = run.invoke(app, ["ask", question, "--index", str(desk.place), "--json"])
    file = tmp_path / "answer.json"
    file.write_text(asked.stdout)
    # its reply is lost: the request is repeated
    web.faults[len(web.seen) + 3] = Reply(status=503)
    first = run.invoke(app, ["answers", "note", str(file), "zotero:Salt <b>"])
    assert first.exit_code == 0, first.output
    assert first.stdout == "Note NOTE0001\n"
    again = run.invoke(app, ["answers", "note", "-", "zotero:COLL0001"], input=asked.stdout)
    assert again.stdout == "The library has this note already.\n"
    (note,) = web.notes
    assert note["itemType"] == "note"
    assert note["collections"] == ["COLL0001"]
    html = note["note"]
    assert "<h2>Did &lt;salt&gt; help?</h2>" in html
    evidence = json.loads(asked.stdout)["evidence"]
    item = evidence[0]["passage"]["id"].partition("#")[0]
    assert f'<a href="zotero://select/library/items/{item.removeprefix("zotero:")}">{item}' in html
    assert "<blockquote>" in html
    assert evidence[0]["quote"] in html
    assert "&lt;sub&gt;" not in html


def test_a_note_that_is_not_taken_is_an_error(desk: Desk, web: ZoteroStub, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text("{}")
    run = CliRunner()
    no_answer = run.invoke(app, ["answers", "note", str(file), "zotero:"])
    assert no_answer.exit_code != 0
    assert "holds no answer" in no_answer.output
    settings = load_settings()
    web.longest = 3
    with pytest.raises(FetchFailed, match="413: Note is too long"):
        add_note("zotero:", "<p>long</p>", settings)
    with pytest.raises(InputError, match="no collection 'Sand'"):
        add_note("zotero:Sand", "<p/>", settings)
    with pytest.raises(InputError, match="a library is"):
        add_note("Sand", "<p/>", settings)
    web.faults[len(web.seen) + 3] = Reply(status=403)
    with pytest.raises(FetchFailed, match="lacks the right"):
        add_note("zotero:", "<p/>", settings)
    desk.set("POSOLOGY_ZOTERO_KEY", "")
    with pytest.raises(ConfigurationError, match="may write"):
        add_note("zotero:", "<p/>", load_settings())
    assert web.notes == []
