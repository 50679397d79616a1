"""Services that reply as none should: other addresses, records of others, lists and replies without an end."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import httpx2
import pytest

from posology.corpus.live.europepmc import EuropePMC
from posology.corpus.live.fetch import FILES, fetch
from posology.corpus.live.forms import Asked, TextService
from posology.corpus.live.pubmed import PubMed
from posology.corpus.live.texts import Archive
from posology.corpus.live.wire import Wire, said
from posology.errors import FetchFailed
from tests.support.growth import MOST, growth
from tests.support.literature import article_set, jats
from tests.support.pubmed_xml import article, document

pytestmark = pytest.mark.anyio
Reply = Callable[[httpx2.Request], httpx2.Response]


async def _at_once(*_: float) -> None:
    pass


def wire(name: str, reply: Reply, *, whole: float = 300.0) -> Wire:
    return Wire(
        name,
        "http://literature.test/api",
        pace=_at_once,
        fixed={"email": "a@example.org"},
        transport=httpx2.MockTransport(reply),
        sleep=_at_once,
        whole=whole,
    )


def asked(name: str, **fields: object) -> Asked:
    given = {"service": name, "limit": 5, **fields}
    return Asked.model_validate(given)


def epmc(*rows: dict[str, str]) -> httpx2.Response:
    return httpx2.Response(200, json={"hitCount": len(rows), "resultList": {"result": list(rows)}})


ROW = {"id": "1", "source": "MED", "pmid": "1", "title": "Salt", "abstractText": "Salt helped."}


@pytest.mark.parametrize(
    "pmcid",
    ["http://127.0.0.1:9414/evil?", "//127.0.0.1/x", "../../secret", "PMC1/../../x", "PMC1?x=", "\u0661"],
)  # fmt: skip
async def test_an_identifier_that_is_an_address_calls_nobody(tmp_path: Path, pmcid: str) -> None:
    seen: list[str] = []

    def reply(request: httpx2.Request) -> httpx2.Response:
        seen.append(str(request.url))
        return epmc(ROW | {"pmcid": pmcid})

    service = EuropePMC(wire("europepmc", reply))
    place = Archive("europepmc", service, closed="no text")
    wanted = asked("europepmc", queries=("salt",), full_text=True)
    found = await fetch(wanted, service, tmp_path, places=(place,))
    assert (found.records, found.full_texts) == (1, 0)
    assert set(seen) == {"http://literature.test/api/searchPOST"}
    # nor one that another part of the program passes on
    assert await service.texts([pmcid]) is None
    assert set(seen) == {"http://literature.test/api/searchPOST"}


def entrez(ids: list[str], records: bytes = b"") -> Reply:
    def reply(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("esearch.fcgi"):
            result = {"count": str(len(ids)), "idlist": ids, "webenv": "w", "querykey": "1"}
            return httpx2.Response(200, json={"esearchresult": result})
        if request.url.path.endswith("epost.fcgi"):
            text = "<ePostResult><QueryKey>1</QueryKey><WebEnv>w</WebEnv></ePostResult>"
            return httpx2.Response(200, text=text)
        return httpx2.Response(200, content=records)

    return reply


async def test_a_list_of_more_ids_than_were_asked_for_is_cut() -> None:
    service = PubMed(wire("pubmed", entrez([str(n) for n in range(1, 200_001)])))
    begun = await service.begin(asked("pubmed", queries=("salt",)))
    assert begun.found == 200_000
    assert begun.state is not None
    assert begun.state.ids == ("1", "2", "3", "4", "5")  # type: ignore[union-attr]


def kept(folder: Path) -> list[Path]:
    return list((folder / FILES).iterdir())


STRANGER = article("7", title="Of others", abstract="Salt did not help.")
OWN = article("1", title="Asked for", abstract="Salt helped.")


@pytest.mark.parametrize(
    "records",
    [document(STRANGER), document(OWN, STRANGER), document(OWN, deleted=("7",)),
     document(OWN, article("8", title="Without an abstract", abstract=None))],
)  # fmt: skip
async def test_a_record_that_was_not_asked_for_is_not_taken(tmp_path: Path, records: bytes) -> None:
    service = PubMed(wire("pubmed", entrez(["1"], records)))
    for given in ({"queries": ("salt",)}, {"pmids": ("1",)}):
        with pytest.raises(FetchFailed, match="not requested"):
            await fetch(asked("pubmed", **given), service, tmp_path / str(*given))
        assert not kept(tmp_path / str(*given))
    right = PubMed(wire("pubmed", entrez(["1"], document(OWN))))
    assert (await fetch(asked("pubmed", pmids=("1",)), right, tmp_path / "right")).records == 1


async def test_of_given_ids_no_other_is_taken_from_europe_pmc(tmp_path: Path) -> None:
    other = EuropePMC(wire("europepmc", lambda _: epmc(ROW, ROW | {"id": "7", "pmid": "7"})))
    with pytest.raises(FetchFailed, match="not requested"):
        await fetch(asked("europepmc", pmids=("1",)), other, tmp_path / "a")
    right = EuropePMC(wire("europepmc", lambda _: epmc(ROW)))
    assert (await fetch(asked("europepmc", pmids=("1",)), right, tmp_path / "b")).records == 1


@pytest.mark.parametrize("opened", [PubMed, EuropePMC])
async def test_no_full_text_of_another_article_is_taken(
    opened: Callable[[Wire], TextService],
) -> None:
    text = article_set(jats(ids={"pmc": "PMC7"}))
    service = opened(wire("x", lambda _: httpx2.Response(200, content=text)))
    with pytest.raises(FetchFailed, match="not requested"):
        await service.texts(["PMC1"])
    found = await service.texts(["PMC7"])
    assert found is not None
    assert found.whole == ("PMC7",)


async def test_a_reply_that_drips_is_given_up() -> None:
    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await anyio.sleep(0.001)

    slow = wire("pubmed", lambda _: httpx2.Response(200, content=drops()), whole=0.05)
    with pytest.raises(FetchFailed, match=r"no whole reply within 0\.05 s"):
        await slow.get("x", bytes)


@pytest.mark.parametrize("mark", ["<", "<a", "< >"])
def test_what_a_service_says_is_read_in_time_in_proportion(mark: str) -> None:
    def read(n: int) -> None:
        assert len(said(mark * n)) <= 200

    assert growth(read, 50_000) < MOST
    assert said(json.dumps({"error": "<b>no</b> such term"})) == '{"error": " no such term"}'
