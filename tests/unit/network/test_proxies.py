"""Proxies of the environment: which one an address is asked through, and which variable is named if it cannot be used."""

from __future__ import annotations

import sys

import httpx2
import pytest

from posology.errors import ConfigurationError
from posology.network.hosts import is_loopback
from posology.network.proxies import proxies, proxy_for, shown, through, without_loopback

REMOTE = "https://api.example.org/v1"


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://127.8.9.1", True),
        ("http://LOCALHOST/v1", True),
        ("http://localhost.:8000", True),
        ("http://posology.localhost", True),
        ("http://[::1]:8000", True),
        ("http://[::ffff:127.0.0.1]:8000", True),
        # other notations of the C library
        ("http://127.1:8000", True),
        ("http://2130706433", True),
        # a connection to it is one to this machine
        ("http://0.0.0.0:8000", True),
        ("http://[::]:8000", True),
        ("https://api.openai.com/v1", False),
        ("https://127.0.0.1.example.org", False),
        ("https://localhost.example.org", False),
        ("http://[::ffff:10.0.0.1]", False),
        ("http://10.0.0.1", False),
        ("http://1", False),
        ("http://[bad/v1", False),
        ("http://", False),
    ],
)
def test_loopback_is_told_by_host_and_has_no_proxy(
    url: str, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_loopback(url) is here
    monkeypatch.setenv("ALL_PROXY", "socks4://nowhere")
    monkeypatch.setenv("HTTP_PROXY", "http://[")
    if here:
        assert proxy_for(url) is None
        assert through(url) == ""


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128 (HTTPS_PROXY)"),
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128 (https_proxy)"),
        ({"HTTPS_PROXY": "http://upper", "https_proxy": "http://lower"}, "http://lower (https_proxy)"),
        # as curl reads it
        ({"HTTPS_PROXY": "127.0.0.1:3128"}, "http://127.0.0.1:3128 (HTTPS_PROXY)"),
        ({"HTTPS_PROXY": "http://me:s%40crt@proxy:1"}, "http://***@proxy:1 (HTTPS_PROXY)"),
        ({"ALL_PROXY": "https://proxy"}, "https://proxy (ALL_PROXY)"),
        ({"HTTPS_PROXY": "http://one", "ALL_PROXY": "socks4://two"}, "http://one (HTTPS_PROXY)"),
        ({"HTTP_PROXY": "http://["}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"ALL_PROXY": "socks5://a", "NO_PROXY": "example.org"}, None),
        ({"HTTPS_PROXY": "http://[", "NO_PROXY": "*"}, None),
    ],
)  # fmt: skip
def test_the_proxy_is_named_with_its_variable_and_no_password(
    variables: dict[str, str], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = proxy_for(REMOTE)
    assert (None if found is None else str(found)) == said
    assert "s%40crt" not in repr(found)
    assert through(REMOTE) == ("" if said is None else f" through the proxy {said}")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("http://[", "no address of a proxy"),
        ("http://proxy:port", "no address of a proxy"),
        ("http://proxy:99999", "no address of a proxy"),
        ("http://", "no address of a proxy"),
        ("proxy:port", "no address of a proxy"),
        ("http://me:s3cr/t@proxy:1", "no address of a proxy"),
        ("http://me:s3cr#t@proxy:1", "no address of a proxy"),
        ("http://pro xy", "no address of a proxy"),
        ("socks4://me:s3crt@proxy:1", "scheme socks4"),
        ("socks://127.0.0.1:1080/", "scheme socks"),
        ("ftp://proxy", "scheme ftp"),
        ("socks5://me:s3crt@127.0.0.1:1080", "pip install 'posology\\[socks\\]'"),
        ("socks5h://127.0.0.1:1080", "pip install 'posology\\[socks\\]'"),
    ],
)
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "all_proxy"])
def test_a_proxy_that_cannot_be_used_is_a_configuration_error(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"^{variable}.*{words}.*or unset it$") as caught:
        proxy_for(REMOTE)
    assert "s3cr" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigurationError, match=variable):
        proxies()
    assert through(REMOTE) == ""


URLS = (
    "https://corp.example/", "https://a.corp.example/x", "https://notcorp.example", "http://10.1.2.3:8080/",
    "https://10.1.2.3", "http://[2001:db8::5]:9/", "https://api.openai.com", "https://corp.example:8443",
)  # fmt: skip


@pytest.mark.parametrize(
    "entries",
    [
        "corp.example", ".corp.example", "*.corp.example", "10.0.0.0/8", "10.1.2.3", "2001:db8::/32",
        "[2001:db8::5]", "2001:db8::5", "*", "corp.example:8443", "10.1.2.3:8080", "corp.example, openai.com",
        "", ",", "junk/x", "CORP.EXAMPLE", " .openai.com ", "10.1.*", "300.1.1.1/8", "example", "[", "a:b",
    ],
)  # fmt: skip
def test_exceptions_are_those_of_the_http_library(
    entries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://proxy")
    monkeypatch.setenv("NO_PROXY", entries)
    client = httpx2.Client()
    for url in URLS:
        direct = client._transport_for_url(httpx2.URL(url)) is client._transport
        assert (proxy_for(url) is None) is direct, url


def test_libraries_are_told_that_this_machine_has_no_proxy() -> None:
    own = "localhost,127.0.0.0/8,127.0.0.1,::1"
    assert without_loopback({"NO_PROXY": "corp.example"}) == {}
    assert without_loopback({"HTTP_PROXY": "", "no_proxy": "a"}) == {}
    assert without_loopback({"HTTP_PROXY": "http://p"}) == {"NO_PROXY": own, "no_proxy": own}
    kept = without_loopback({"all_proxy": "http://p", "NO_PROXY": "a, ::1"})
    assert kept["NO_PROXY"] == "a,::1,localhost,127.0.0.0/8,127.0.0.1"
    assert without_loopback({"HTTP_PROXY": "http://p", "NO_PROXY": "a,*"}) == {}


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("http://proxy:1", "http://proxy:1"),
        ("http://me:pass@proxy:1", "http://***@proxy:1"),
        ("me:pa@ss@proxy:1", "***@proxy:1"),
    ],
)
def test_no_password_is_shown(address: str, plain: str) -> None:
    assert shown(address) == plain
