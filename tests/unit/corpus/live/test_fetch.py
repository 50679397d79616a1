"""Fetches from the stub services: what comes, what is repeated, and what an interruption keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from posology.corpus.files import read
from posology.corpus.items import Notice, Record
from posology.corpus.live.clinicaltrials import ClinicalTrials
from posology.corpus.live.europepmc import EuropePMC, as_row
from posology.corpus.live.fetch import FILES, fetch, fetched
from posology.corpus.live.forms import Asked, Journal, Service, Wanted
from posology.corpus.live.pace import ProcessPace
from posology.corpus.live.pubmed import PubMed, _texts, read_texts
from posology.corpus.live.question import queries
from posology.corpus.live.texts import Archive, Found, TextPlace, Unpaywall
from posology.corpus.live.wire import ATTEMPTS, Unusable, Wire
from posology.errors import BadRecord, ConfigurationError, FetchFailed
from posology.published.ingests import FetchOutput
from posology.testing.literature.articles import ARTICLES, many
from posology.testing.literature.stub import LiteratureStub
from posology.testing.literature.studies import study

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 15, tzinfo=UTC)


class Time:
    """A clock that moves by sleeping alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def _wire(stub: LiteratureStub, clock: Time, name: str) -> Wire:
    return Wire(
        name,
        f"http://literature.test/{name}",
        pace=ProcessPace(3.0, clock=clock, sleep=clock.sleep),
        fixed={"tool": "posology", "email": "a@example.org"} if name == "pubmed" else {},
        transport=stub.transport(),
        sleep=clock.sleep,
    )


@dataclass
class Fetches:
    """Fetches from the stub of a service into folders."""

    name: str
    folder: Path
    clock: Time = field(default_factory=Time)

    def stub(self, *articles: Any, **given: Any) -> LiteratureStub:
        return LiteratureStub(*articles, clock=self.clock, **given)

    async def __call__(
        self, stub: LiteratureStub, asked: Asked | str, to: str = "f", **more: Any
    ) -> FetchOutput:
        wire = _wire(stub, self.clock, self.name)
        kinds: dict[str, Callable[[Wire], Service]] = {
            "pubmed": PubMed,
            "europepmc": EuropePMC,
            "clinicaltrials": ClinicalTrials,
        }
        if isinstance(asked, str):
            asked = _asked(self.name, asked)
        places = self.places(stub) if asked.full_text else ()
        return await fetch(asked, kinds[self.name](wire), self.folder / to, places=places, **more)

    def places(self, stub: LiteratureStub, *, email: bool = True) -> tuple[TextPlace, ...]:
        def to(name: str) -> Wire:
            return _wire(stub, self.clock, name)

        return (
            Archive("pmc", PubMed(to("pubmed")), closed="no text"),
            Archive("europepmc", EuropePMC(to("europepmc")), closed="no open text"),
            Unpaywall(to("unpaywall") if email else None),
        )

    def passages(self) -> dict[str, Record]:
        return {
            item.passage.id: item
            for path in sorted((self.folder / "f" / FILES).iterdir())
            for item in read(path)
            if isinstance(item, Record)
        }


@pytest.fixture(params=["pubmed", "europepmc"])
def fetches(request: pytest.FixtureRequest, tmp_path: Path) -> Fetches:
    return Fetches(request.param, tmp_path)


@pytest.fixture
def pubmed(tmp_path: Path) -> Fetches:
    return Fetches("pubmed", tmp_path)


def _asked(name: str, *given: str, limit: int = 100, full_text: bool = False) -> Asked:
    return Asked.model_validate(
        {"service": name, "queries": given, "limit": limit, "full_text": full_text}
    )


async def test_a_query_becomes_files_that_the_readers_read(fetches: Fetches) -> None:
    stub = fetches.stub()
    found = await fetches(stub, "aspirin AND stroke", clock=lambda: NOW)
    assert (found.found, found.records, found.query) == (5, 5, "aspirin AND stroke")
    assert (found.started, found.ended, found.id) == (NOW, NOW, "f")
    passages = fetches.passages()
    assert set(passages) == {f"pmid:9000000{n}" for n in range(1, 5)}
    assert "12% to 8%" in passages["pmid:90000001"].passage.text
    assert passages["pmid:90000003"].passage.retracted
    assert not passages["pmid:90000004"].passage.retracted
    folder = fetches.folder / "f"
    bad = [i for p in (folder / FILES).iterdir() for i in read(p) if isinstance(i, BadRecord)]
    assert [one.record for one in bad] == ["pmid:90000005"]
    assert all(one.form.get("tool") == "posology" for one in stub.seen if fetches.name == "pubmed")
    # complete: nothing is asked for again
    sent = len(stub.seen)
    assert await fetches(stub, "aspirin AND stroke") == found
    assert fetched(folder) == found
    assert len(stub.seen) == sent


async def test_two_fetches_of_the_same_have_the_same_digest(fetches: Fetches) -> None:
    stub = fetches.stub(many(450))
    asked = _asked(fetches.name, "stubazole", limit=420)
    made = [await fetches(stub, asked, folder) for folder in ("a", "b")]
    assert made[0].sha256 == made[1].sha256
    assert [len(one.files) for one in made] == [3, 3]
    assert [one.records for one in made] == [420, 420]
    assert made[0].found == 450


async def test_no_second_has_more_requests_than_the_limit(fetches: Fetches) -> None:
    stub = fetches.stub(many(2_000))
    await fetches(stub, _asked(fetches.name, "stubazole", limit=2_000))
    times = [one.at for one in stub.seen]
    assert len(times) >= 11
    assert max(sum(t <= at < t + 1.0 for at in times) for t in times) <= 3
    assert stub.paths(status=429) == []


async def test_faults_that_pass_are_retried_and_lose_nothing(fetches: Fetches) -> None:
    asked = _asked(fetches.name, "stubazole", limit=450)
    expected = await fetches(fetches.stub(many(450)), asked, "quiet")
    stub = fetches.stub(
        many(450),
        faults={1: "429", 2: "error", 3: "cut", 5: "cut", 6: "500", 7: "error", 9: "429"},
    )
    found = await fetches(stub, asked)
    assert found.sha256 == expected.sha256
    assert found.records == 450
    assert Counter(one.status for one in stub.seen)[429] == 2


async def test_a_429_waits_as_long_as_it_asks(pubmed: Fetches) -> None:
    stub = pubmed.stub(faults={1: "429"})
    await pubmed(stub, "aspirin")
    assert stub.seen[1].at - stub.seen[0].at >= 2.0


async def test_a_list_that_the_history_forgets_is_posted_again(pubmed: Fetches) -> None:
    stub = pubmed.stub(many(500), faults={3: "gone"})
    found = await pubmed(stub, _asked("pubmed", "stubazole", limit=500))
    assert found.records == 500
    posted = [one.form["id"].split(",") for one in stub.seen if one.path == "epost.fcgi"]
    assert [len(ids) for ids in posted] == [300]
    assert len(pubmed.passages()) == 500


async def test_long_lists_of_pmids_are_posted_and_those_that_do_not_come_are_named(
    pubmed: Fetches,
) -> None:
    stub = pubmed.stub(many(300))
    pmids = (*(str(91_000_000 + n) for n in range(300)), "4")
    found = await pubmed(stub, Asked(service="pubmed", pmids=pmids, limit=1_000))
    assert (found.found, found.records, found.missing) == (301, 300, ("4",))
    assert found.query is None
    assert stub.paths() == ["epost.fcgi", "efetch.fcgi", "efetch.fcgi"]


async def test_an_interrupted_fetch_resumes_without_what_is_there(fetches: Fetches) -> None:
    stub = fetches.stub(many(600))
    asked = _asked(fetches.name, "stubazole", limit=600)

    def stop(journal: Journal) -> None:
        if len(journal.files) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await fetches(stub, asked, told=stop)
    before = len(stub.seen)
    # a process that starts again knows nothing of the requests of the one before
    fetches.clock.now += 2.0
    found = await fetches(stub, asked)
    assert len(stub.seen) - before == 1
    assert (found.records, len(found.files)) == (600, 3)
    whole = await fetches(stub, asked, "whole")
    assert whole.sha256 == found.sha256


async def test_open_full_texts_come_and_others_say_why(fetches: Fetches) -> None:
    asked = _asked(fetches.name, "aspirin AND stroke", full_text=True)
    found = await fetches(fetches.stub(), asked)
    assert (found.full_texts, found.text_places, found.without_text) == (1, {"pmc": 1}, 3)
    texts = [one.passage.text for one in fetches.passages().values()]
    assert any("96 of 1,200" in text for text in texts)
    why = {one.record: one for one in found.texts_missing}
    assert why["pmid:90000002"].why == {
        "pmc": "no text",
        "europepmc": "no open text",
        "unpaywall": "no free copy is known",
    }
    assert why["pmid:90000003"].why["pmc"] == "it is not in PubMed Central"
    copied = why["pmid:90000004"]
    assert copied.copy_at == "https://repository.example/stub/90000004.pdf"
    assert copied.why["unpaywall"] == "a copy elsewhere is not fetched (acceptedVersion, cc-by)"
    assert not any("repository" in one.path for one in fetches.stub().seen)


@pytest.mark.parametrize(
    "said",
    [
        '<Reply Id="123456" error="The following PMCID is not available: 123456"/>',
        '<error id="123456">The following PMCID is not available: 123456</error>',
    ],
)
def test_articles_that_pubmed_central_does_not_send_are_none(said: str) -> None:
    body = f"<pmc-articleset>{said}</pmc-articleset>".encode()
    assert _texts(body, ["PMC123456"]) is None
    with pytest.raises(Unusable):
        _texts(b"<pmc-articleset></pmc-articleset>", ["PMC123456"])


def test_an_article_without_its_body_is_no_full_text() -> None:
    """Whatever abstracts it has."""
    front = (
        '<front><article-meta><article-id pub-id-type="pmcid">PMC123456</article-id>'
        "<abstract><p>Salt helped.</p></abstract>"
        '<abstract abstract-type="plain-language-summary"><title>Summary</title><p>Salt is good.</p></abstract>'
        "</article-meta></front>"
    )
    assert read_texts(f"<article>{front}</article>".encode(), ["PMC123456"]) is None
    body = "<body><sec><title>Methods</title><p>Half had salt.</p></sec></body>"
    found = read_texts(f"<article>{front}{body}</article>".encode(), ["PMC123456"])
    assert found is not None
    assert found.whole == ("PMC123456",)


async def test_the_next_place_is_asked_for_what_one_lacks(pubmed: Fetches) -> None:
    articles = [replace(one, in_pmc=False) for one in ARTICLES]
    stub = pubmed.stub(articles)
    found = await pubmed(stub, _asked("pubmed", "aspirin AND stroke", full_text=True))
    assert found.text_places == {"europepmc": 1}
    # not of one that has come already
    assert "10.9999%2Fstub.90000001" not in stub.paths()
    assert any("96 of 1,200" in one.passage.text for one in pubmed.passages().values())


async def test_a_place_that_is_down_is_a_reason_and_its_own_service_is_not(
    pubmed: Fetches,
) -> None:
    stub = pubmed.stub()

    class Down:
        name, at_once, asked = "europepmc", 1, 0

        async def find(self, wanted: Sequence[Wanted]) -> Found:
            self.asked += 1
            raise FetchFailed("europepmc gave no usable reply", service="europepmc")

    down, asked = Down(), _asked("pubmed", "aspirin AND stroke", full_text=True)
    places = (pubmed.places(stub)[0], down)
    service = PubMed(_wire(stub, pubmed.clock, "pubmed"))
    found = await fetch(asked, service, pubmed.folder / "f", places=places)
    assert down.asked == 1
    assert [one.why["europepmc"] for one in found.texts_missing] == [
        "europepmc gave no usable reply"
    ] * 3
    down.name = "pmc"
    with pytest.raises(FetchFailed, match="no usable reply"):
        await fetch(asked, service, pubmed.folder / "g", places=(down,))
    # and is completed when it replies
    whole = await fetch(asked, service, pubmed.folder / "g", places=pubmed.places(stub))
    assert whole.full_texts == 1


async def test_unpaywall_needs_an_address_and_knows_not_every_doi(pubmed: Fetches) -> None:
    stub = pubmed.stub()
    wanted = [Wanted(record="a", pmcid=None, doi="10.1/a/b")]
    (*_, silent) = pubmed.places(stub, email=False)
    assert "POSOLOGY_EMAIL" in (await silent.find(wanted)).why["a"]
    assert stub.seen == []
    (*_, place) = pubmed.places(stub)
    assert (await place.find(wanted)).why == {"a": "it does not know the DOI"}
    none = [Wanted(record="a", pmcid=None, doi=None)]
    assert (await place.find(none)).why == {"a": "it has no DOI"}


@pytest.mark.parametrize("address", ["file:///etc/passwd", "https://x/ y", "javascript:1", 5, None])
async def test_an_address_that_is_none_is_not_shown(address: object) -> None:
    body = {"best_oa_location": {"url": address, "url_for_pdf": None}}
    wire = Wire(
        "unpaywall",
        "http://literature.test",
        pace=ProcessPace(1_000),
        fixed={"email": "a@example.org"},
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=body)),
    )
    found = await Unpaywall(wire).find([Wanted(record="a", pmcid=None, doi="10.1/a")])
    assert found.copies == {}


@pytest.mark.parametrize("links", ["related", "cited_by"])
async def test_linked_articles_are_fetched_in_place_of_the_given_ones(
    pubmed: Fetches, links: Any
) -> None:
    stub = pubmed.stub()
    found = await pubmed(stub, Asked(service="pubmed", pmids=("90000001",), links=links, limit=3))
    name = "pubmed_pubmed" if links == "related" else "pubmed_pubmed_citedin"
    assert found.query == f"{name} of 90000001"
    expected = ["90000002", "90000003", "90000004"] if links == "related" else ["90000004"]
    assert set(pubmed.passages()) == {f"pmid:{one}" for one in expected}
    assert found.records == len(expected)


async def test_europe_pmc_searches_for_citing_articles(tmp_path: Path) -> None:
    fetches = Fetches("europepmc", tmp_path)
    asked = Asked(service="europepmc", pmids=("90000001",), links="cited_by", limit=9)
    found = await fetches(fetches.stub(), asked)
    assert found.query == "CITES:90000001_MED"
    assert set(fetches.passages()) == {"pmid:90000004"}


async def test_europe_pmc_names_the_pmids_that_do_not_come(tmp_path: Path) -> None:
    fetches = Fetches("europepmc", tmp_path)
    pmids = ("90000001", "4", "90000002", "5")
    found = await fetches(fetches.stub(), Asked(service="europepmc", pmids=pmids, limit=9))
    assert (found.records, found.missing, found.query) == (2, ("4", "5"), None)
    fewer = await fetches(fetches.stub(), Asked(service="europepmc", pmids=pmids, limit=2), "fewer")
    assert (fewer.records, fewer.missing) == (1, ("4",))
    none = await fetches(fetches.stub(), Asked(service="europepmc", pmids=("4",), limit=9), "none")
    assert (none.records, none.missing) == (0, ("4",))


async def test_articles_that_nothing_cites_bring_nothing(pubmed: Fetches) -> None:
    asked = Asked(service="pubmed", pmids=("90000006",), links="cited_by", limit=9)
    found = await pubmed(pubmed.stub(), asked)
    assert (found.found, found.records, found.files) == (0, 0, ())


async def test_studies_come_by_their_numbers_or_a_query(tmp_path: Path) -> None:
    fetches = Fetches("clinicaltrials", tmp_path)
    numbers = ("NCT90000001", "NCT99999999", "NCT90000002")
    found = await fetches(fetches.stub(), Asked(service="clinicaltrials", trials=numbers, limit=9))
    assert (found.query, found.records, found.missing) == (None, 2, ("NCT99999999",))
    parents = {one.passage.parent for one in fetches.passages().values()}
    assert parents == {"nct:NCT90000001", "nct:NCT90000002"}
    searched = await fetches(fetches.stub(), "children AND gout", "q")
    assert (searched.found, searched.records, searched.query) == (1, 1, "children AND gout")


async def test_pages_of_studies_follow_their_tokens(tmp_path: Path) -> None:
    fetches = Fetches("clinicaltrials", tmp_path)
    studies = [study(f"NCT{n:08}", f"Saltine {n}") for n in range(1, 121)]
    stub = fetches.stub(studies=studies)
    found = await fetches(stub, _asked("clinicaltrials", "saltine", limit=110))
    assert (found.found, found.records) == (120, 110)
    assert [one.form.get("pageToken") for one in stub.seen[1:]] == [None, "50", "100"]
    given = Asked(
        service="clinicaltrials", limit=200, trials=tuple(f"NCT{n:08}" for n in range(61, 131))
    )
    named = await fetches(stub, given, "named")
    assert (named.records, len(named.missing)) == (60, 10)


async def test_a_study_that_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    other = {"studies": [study("NCT90000007", "Other")]}
    wire = Wire(
        "clinicaltrials",
        "http://literature.test",
        pace=ProcessPace(1_000),
        fixed={},
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=other)),
        sleep=Time().sleep,
    )
    asked = Asked(service="clinicaltrials", trials=("NCT90000001",), limit=1)
    with pytest.raises(FetchFailed, match="was not requested"):
        await fetch(asked, ClinicalTrials(wire), tmp_path / "f")


@pytest.mark.parametrize("kind", ["preprint-withdrawal", "Preprint-removal"])
def test_a_withdrawn_preprint_is_retracted(kind: str) -> None:
    result = {
        "id": "PPR1",
        "source": "PPR",
        "title": "Salt",
        "pubTypeList": {"pubType": ["Preprint", kind]},
    }
    row = as_row(result)
    assert row is not None
    assert row["retracted"]


@pytest.mark.parametrize(
    ("queries_", "taken", "records", "notes"),
    [
        (["zzz AND yyy"], None, 0, ["`zzz AND yyy` finds nothing."]),
        # one that finds too little gives way to a wider one, and of several the best is taken
        (["metformin AND walruses", "metformin"], "metformin", 1, ["`metformin AND walruses` finds nothing."]),
        (
            ["aspirin AND adults", "stroke AND aspirin", "metformin"],
            "stroke AND aspirin",
            5,
            ["`aspirin AND adults` finds 3.", "`metformin` finds 1."],
        ),
    ],
)  # fmt: skip
async def test_the_query_that_finds_most_is_taken(
    fetches: Fetches, queries_: list[str], taken: str | None, records: int, notes: list[str]
) -> None:
    found = await fetches(fetches.stub(), _asked(fetches.name, *queries_))
    assert found.records == records
    assert len(found.files) == min(1, records)
    assert taken in (None, found.query)
    assert set(notes) <= set(found.notes)


def _wider(name: str, *, limit: int = 100) -> Asked:
    tried = ("stubazole AND pressure AND adults", "stubazole AND adults", "stubazole AND study")
    return _asked(name, *tried, limit=limit).model_copy(update={"wider": True})


#: eleven that the first query finds, three that only the second does, and two that only the third does
_SPREAD = tuple(
    replace(one, abstract=f"In this study, stubazole lowered {words}.")
    for one, words in zip(
        many(16),
        11 * ["pressure in adults"] + 3 * ["weight in adults"] + 2 * ["weight"],
        strict=True,
    )
)


@pytest.mark.parametrize(("limit", "records", "asked"), [(100, 16, 2), (13, 13, 1), (11, 11, 0)])
async def test_wider_queries_fill_up_the_limit(
    fetches: Fetches, limit: int, records: int, asked: int
) -> None:
    stub = fetches.stub(_SPREAD)
    made = await fetches(stub, _wider(fetches.name, limit=limit))
    assert made.query == "stubazole AND pressure AND adults"
    assert (
        made.wider
        == (
            "(stubazole AND adults) NOT (stubazole AND pressure AND adults)",
            "(stubazole AND study) NOT (stubazole AND adults)",
        )[:asked]
    )
    assert (made.records, len(fetches.passages())) == (records, records)
    assert made.found == (11, 14, 16)[asked]
    assert len(made.notes) == asked
    assert (" and 2 wider queries on " in made.sentence) == (asked == 2)


async def test_a_wider_query_that_fails_is_a_remark(fetches: Fetches) -> None:
    def reached(_: str, form: Mapping[str, str]) -> None:
        if " NOT " in form.get("term", form.get("query", "")):
            stub._faults[len(stub.seen) + 1] = "500"

    stub = fetches.stub(_SPREAD, reached=reached)
    made = await fetches(stub, _wider(fetches.name))
    assert (made.records, made.found, made.wider) == (11, 11, ())
    (note,) = made.notes
    assert note.startswith("A wider query failed: ")
    assert fetched(fetches.folder / "f") == made


async def test_an_interrupted_wider_query_resumes(fetches: Fetches) -> None:
    stub, killed = fetches.stub(_SPREAD), False

    def told(journal: Journal) -> None:
        nonlocal killed
        if len(journal.wider) == 1 and not killed:
            killed = True
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await fetches(stub, _wider(fetches.name), told=told)
    made = await fetches(stub, _wider(fetches.name))
    assert (made.records, len(made.wider)) == (16, 2)
    searched = [one for one in stub.seen if one.status == 200 and "efetch" not in one.path]
    queries_sent = [one for one in searched if one.form.get("resultType") != "core"]
    assert len(queries_sent) == 3


#: twelve that are more relevant, and eight of which the last three were added later
_ADDED = tuple(
    replace(one, abstract="Stubazole.", added="2026-01-10" if n >= 17 else "2025-02-01")
    for n, one in enumerate(many(20))
)


@pytest.mark.parametrize(
    ("limit", "day", "old", "new"),
    [(16, "2026-01-08", 12, 3), (8, "2026-01-08", 6, 2), (100, "2026-01-08", 20, 3), (16, "2026-01-12", 12, 0), (3, "2026-01-08", 3, None)],
)  # fmt: skip
async def test_a_quarter_is_reserved_for_what_was_added(
    fetches: Fetches, limit: int, day: str, old: int, new: int | None
) -> None:
    asked = _asked(fetches.name, "stubazole", limit=limit)
    made = await fetches(
        fetches.stub(_ADDED), asked.model_copy(update={"added_since": date.fromisoformat(day)})
    )
    assert (made.query, made.found, made.records) == ("stubazole", 20, old + (new or 0))
    if new is None:
        assert (made.newer, made.notes) == (None, ())
        return
    sent = {
        "pubmed": f'(stubazole) AND ("{day.replace("-", "/")}"[edat] : "3000"[edat])',
        "europepmc": f"(stubazole) AND FIRST_IDATE:[{day} TO 3000-01-01]",
    }
    assert made.newer == sent[fetches.name]
    assert made.notes == (f"`{made.newer}` finds {3 if new else 'nothing'}.",)
    assert f"for `stubazole` and `{made.newer}` on" in made.sentence
    assert len(fetches.passages()) == min(20, old + new)


async def test_a_failure_of_what_was_added_fails_the_fetch_which_resumes(fetches: Fetches) -> None:
    """Else the next check of a watch would miss what came in between."""

    down = True

    def reached(_: str, form: Mapping[str, str]) -> None:
        if down and "3000" in form.get("term", form.get("query", "")):
            stub._faults[len(stub.seen) + 1] = "500"

    stub = fetches.stub(_ADDED, reached=reached)
    asked = _asked(fetches.name, "stubazole", limit=16)
    asked = asked.model_copy(update={"added_since": date(2026, 1, 8)})
    with pytest.raises(FetchFailed):
        await fetches(stub, asked)
    down = False
    made = await fetches(stub, asked)
    assert (made.records, made.newer is None) == (15, False)
    sent = [one.form.get("term", one.form.get("query")) for one in stub.seen]
    assert sent.count("stubazole") == (1 if fetches.name == "pubmed" else 2), "nothing came twice"


async def test_changed_studies_are_fetched_though_others_are_more_relevant(tmp_path: Path) -> None:
    registry = Fetches("clinicaltrials", tmp_path)
    results: dict[str, Any] = {"outcomeMeasuresModule": {"outcomeMeasures": []}}
    studies = [
        study(f"NCT0000000{n}", "Gout", results=results if n == 7 else None) for n in range(8)
    ]
    stub = registry.stub(studies=studies)
    asked = _asked("clinicaltrials", "gout", limit=4)
    made = await registry(stub, asked.model_copy(update={"added_since": date(2022, 5, 1)}))
    assert made.newer == "(gout) AND AREA[LastUpdatePostDate]RANGE[2022-05-01,MAX]"
    assert (made.records, made.notes) == (4, (f"`{made.newer}` finds 1.",))
    assert any("NCT00000007" in one for one in registry.passages())


async def test_a_retraction_gives_notice(pubmed: Fetches) -> None:
    await pubmed(pubmed.stub(), "aspirin")
    (page,) = (pubmed.folder / "f" / FILES).iterdir()
    assert [one.target for one in read(page) if isinstance(one, Notice)] == ["pmid:90000003"]


@pytest.mark.parametrize(
    ("faults", "said", "sent"),
    [
        (dict.fromkeys(range(1, 50), "500"), r"pubmed .*status 500", ATTEMPTS),
        # it is not followed
        ({1: "redirect"}, r"redirects to elsewhere\.example", 1),
    ],
    ids=["down", "redirect"],
)
async def test_a_service_that_is_given_up_is_named(
    pubmed: Fetches, faults: dict[int, Any], said: str, sent: int
) -> None:
    stub = pubmed.stub(faults=faults)
    with pytest.raises(FetchFailed, match=said) as failed:
        await pubmed(stub, "aspirin")
    assert failed.value.service == "pubmed"
    assert len(stub.seen) == sent


async def test_the_key_is_in_no_address_and_in_no_error(tmp_path: Path) -> None:
    clock = Time()
    addresses: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        addresses.append(str(request.url))
        raise httpx2.ConnectError(f"no route for {request.content!r}")

    wire = Wire(
        "pubmed",
        "http://literature.test",
        pace=ProcessPace(3, clock=clock, sleep=clock.sleep),
        fixed={"api_key": "s3cret"},
        transport=httpx2.MockTransport(answer),
        sleep=clock.sleep,
    )
    with pytest.raises(FetchFailed) as failed:
        await fetch(_asked("pubmed", "aspirin"), PubMed(wire), tmp_path / "f")
    assert "s3cret" not in str(failed.value)
    assert failed.value.__cause__ is None
    assert not any("s3cret" in address for address in addresses)


@pytest.mark.parametrize("content", [b"", b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>", b"\xff\xfe"])
async def test_rubbish_is_retried_and_then_an_error(tmp_path: Path, content: bytes) -> None:
    clock = Time()
    stub = LiteratureStub(clock=clock)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if "efetch" in request.url.path:
            return httpx2.Response(200, content=content)
        return stub.transport().handler(request)  # type: ignore[return-value]

    wire = _wire(stub, clock, "pubmed")
    wire._http = httpx2.AsyncClient(base_url=wire.base_url, transport=httpx2.MockTransport(answer))
    with pytest.raises(FetchFailed, match="no usable reply"):
        await fetch(_asked("pubmed", "aspirin"), PubMed(wire), tmp_path / "f")
    assert list((tmp_path / "f" / FILES).iterdir()) == []


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://u:p@x/", "http://x/?a=b", "file:///etc", "http://[::1"]
)
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError):
        Wire("pubmed", url, pace=ProcessPace(3), fixed={})


@pytest.mark.parametrize(
    ("question", "query"),
    [
        (
            "Does aspirin reduce the risk of stroke in adults?",
            "aspirin AND risk AND stroke AND adults",
        ),
        ('Is "atrial fibrillation" caused by alcohol?', '"atrial fibrillation" AND alcohol'),
        ("What is IL-6?", "IL-6"),
        ("Is it?", "Is AND it"),
        ("Covid[ti] OR cancer) AND (x", "Covid AND ti AND cancer AND x"),
    ],
)
def test_a_question_becomes_a_query_by_rule(question: str, query: str) -> None:
    assert queries(question)[0] == query


def test_a_wider_query_has_one_term_less_and_two_at_least() -> None:
    found = queries("Does aspirin reduce recurrent stroke in hypertension?")
    assert found[0] == "aspirin AND recurrent AND stroke AND hypertension"
    assert [one.count(" AND ") for one in found] == [3, 2, 1]
    assert "aspirin" in found[-1]
