"""Addresses that may be called."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from orchestrator.webhooks.targets import Networks, TargetRefused, check_url, may_call, resolve
from posology.errors import InvalidQuery

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1", "fc00::1",
    "fd00:ec2::254", "ff02::1", "fec0::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:7f00:1::", "100::1",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_what_is_not_public_is_not_called(address: str) -> None:
    assert not may_call(ip_address(address), ())
    allowed = (ip_network(address),)
    assert may_call(ip_address(address), allowed)
    assert may_call(ip_address(address), allowed, secure=False)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111"])
def test_what_is_public_is_called_over_tls_alone(address: str) -> None:
    assert may_call(ip_address(address), ())
    assert not may_call(ip_address(address), (), secure=False)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "host", ["localhost", "127.1", "0x7f000001", "2130706433", "[::1]", "nothing.invalid", "a" * 70, "fe80::1%1"]
)  # fmt: skip
async def test_a_name_is_checked_by_its_addresses(host: str) -> None:
    with pytest.raises(TargetRefused) as refused:
        await resolve(host.strip("[]"), 443, (), secure=True)
    # a name within the network and one that does not exist look the same
    assert str(refused.value) == str(TargetRefused())


@pytest.mark.anyio
async def test_an_allowed_name_is_called_by_its_address() -> None:
    allowed = (ip_network("127.0.0.0/8"), ip_network("::1"))
    found = await resolve("localhost", 80, allowed, secure=False)
    assert set(found) <= {"127.0.0.1", "::1"}
    assert found


LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1"))


@pytest.mark.anyio
@pytest.mark.parametrize(("url", "allowed"), [
    ("https://example.org/h", ()), ("https://1.1.1.1/h", ()), ("https://10.1.2.3/h", (ip_network("10.1.0.0/16"),)),
    ("http://10.1.2.3:8000/h", (ip_network("10.1.0.0/16"),)), ("http://localhost:8000/h", LOOPBACK),
    ("https://localhost/h", LOOPBACK),
])  # fmt: skip
async def test_an_address_that_is_delivered_to_may_be_stored(url: str, allowed: Networks) -> None:
    await check_url(url, allowed)


@pytest.mark.anyio
@pytest.mark.parametrize(("url", "allowed", "reason"), [
    ("http://example.org/h", (), "http:// is delivered only"), ("http://10.1.2.3/h", (), "http:// is delivered only"),
    ("http://1.1.1.1/h", LOOPBACK, "http:// is delivered only"),
    ("http://nothing.invalid/h", LOOPBACK, "http:// is delivered only"),
    ("http://localhost/h", (ip_network("10.1.0.0/16"),), "http:// is delivered only"),
    ("https://localhost/h", (), "not a public address"), ("https://2130706433/h", (), "not a public address"),
    ("https://0x7f.1/h", (), "not a public address"),
])  # fmt: skip
async def test_an_address_that_nothing_is_delivered_to_is_refused(
    url: str, allowed: Networks, reason: str
) -> None:
    with pytest.raises(InvalidQuery, match=reason):
        await check_url(url, allowed)
