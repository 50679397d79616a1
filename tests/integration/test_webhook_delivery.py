"""One attempt at a message: which address is called, by which name, and what of the response is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import anyio
import pytest

from orchestrator.webhooks.delivery import KEPT, Delivery
from tests.support.certificates import tls_for
from tests.support.receiver import receiving

pytestmark = pytest.mark.anyio

HERE = (ip_network("127.0.0.0/8"), ip_network("::1"))
MESSAGE = {"webhook-id": "msg_1"}


@pytest.fixture
async def delivery() -> AsyncIterator[Delivery]:
    made = Delivery(HERE, timeout=60)
    yield made
    await made.aclose()


async def test_no_address_of_this_machine_is_called_unless_it_is_allowed() -> None:
    careful = Delivery()
    async with receiving() as receiver:
        for host in ("127.0.0.1", "localhost", "127.1", "2130706433"):
            for scheme in ("http", "https"):
                found = await careful.post(f"{scheme}://{host}:{receiver.port}/", b"{}", MESSAGE)
                assert (found.status, found.delivered) == (None, False)
                why = "POSOLOGY_WEBHOOK_NETWORKS" if scheme == "http" else "public address"
                assert why in found.error
        assert receiver.received == []
    await careful.aclose()


async def test_a_redirect_is_a_failure(delivery: Delivery) -> None:
    async with receiving() as receiver, receiving() as other:
        receiver.says(307, Location=other.url)
        found = await delivery.post(receiver.url, b"{}", MESSAGE)
        assert (found.status, found.delivered, found.error) == (307, False, "status 307")
        assert other.received == []


async def test_little_of_a_response_is_kept(delivery: Delivery) -> None:
    async with receiving() as receiver:
        receiver.says(
            400, body="geh\u202eeim\x00 ".encode() + b"x" * 1_000_000, Content_Encoding="gzip"
        )
        found = await delivery.post(receiver.url, b"{}", MESSAGE)
    assert found.error.startswith("status 400: geh eim x")
    assert len(found.error) == KEPT


async def test_silence_ends(tmp_path: Path) -> None:
    hasty = Delivery(HERE, timeout=0.05)
    async with receiving() as receiver:
        receiver.before = anyio.sleep_forever
        found = await hasty.post(receiver.url, b"{}", MESSAGE)
    assert (found.status, found.error) == (None, "no response within 0.05 s")
    await hasty.aclose()


async def test_a_closed_port_is_a_failure_without_details(delivery: Delivery) -> None:
    async with receiving() as receiver:
        url = receiver.url
    found = await delivery.post(url, b"{}", MESSAGE)
    assert (found.status, found.error) == (None, "ConnectError")


async def test_the_certificate_is_checked_for_the_name(tmp_path: Path) -> None:
    """The address is called that was checked, and TLS is with the name."""
    server, client = tls_for("localhost", tmp_path)
    delivery = Delivery(HERE, timeout=60, tls=client)
    async with receiving(server) as receiver:
        found = await delivery.post(f"https://localhost:{receiver.port}/hook?a=b", b"{}", MESSAGE)
        assert found.delivered, found
        (got,) = receiver.received
        assert (got.path, got.headers["host"]) == ("/hook?a=b", f"localhost:{receiver.port}")
        wrong = await delivery.post(f"https://127.0.0.1:{receiver.port}/", b"{}", MESSAGE)
        assert (wrong.status, wrong.error) == (None, "ConnectError")
        assert len(receiver.received) == 1
    await delivery.aclose()
