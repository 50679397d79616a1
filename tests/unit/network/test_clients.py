"""HTTP clients and the environment: who is asked, and what a failure says. The proxies are on this machine."""

from __future__ import annotations

import ast
import ssl
import sys
from pathlib import Path

import httpx2
import pytest

from orchestrator.webhooks.delivery import Delivery
from posology.client import ApiError, ApiUnreachable, Client, SyncClient
from posology.corpus.live.wire import Unusable
from posology.corpus.live.wire import Wire as LiveWire
from posology.errors import ConfigurationError, FetchFailed, InvalidQuery
from posology.network.certificates import distrust
from posology.network.clients import checked_url, http_client
from posology.network.failures import public, reason
from tests.support.certificates import PEM, tls_for
from tests.support.receiver import receiving

ROOT = Path(__file__).parents[3]
#: nobody has this name: only a proxy could answer for it
REMOTE = "http://service.invalid"
pytestmark = pytest.mark.anyio


async def no_wait(*_: object) -> None:
    pass


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_the_key_of_a_tenant_never_goes_to_a_proxy_of_this_machine(
    variable: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as proxy, receiving() as service:
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        service.says(401)
        async with Client(f"http://{name}:{service.port}", api_key="psl_a_b") as client:
            with pytest.raises(ApiError):
                await client.get("job_1")
    assert proxy.received == []
    assert service.received[0].headers["authorization"] == "Bearer psl_a_b"


async def test_another_machine_is_asked_through_the_proxy_which_errors_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:s3crt@127.0.0.1:{proxy.port}")
        named = f"through the proxy http://\\*\\*\\*@127.0.0.1:{proxy.port} \\(HTTP_PROXY\\)"
        async with Client(REMOTE, attempts=1) as client:
            proxy.says(502)
            with pytest.raises(ApiError, match=f"answered 502 {named}"):
                await client.get("job_1")
        assert proxy.received[0].path.startswith(f"{REMOTE}/v1/jobs/")
    async with Client(REMOTE, attempts=1) as client:
        with pytest.raises(ApiUnreachable, match=f"ConnectError {named}") as caught:
            await client.get("job_1")
    assert "s3crt" not in str(caught.value)
    wire = LiveWire("pubmed", REMOTE, pace=no_wait, fixed={}, sleep=no_wait)
    with pytest.raises(FetchFailed, match=f"ConnectError {named}"):
        await wire.get("x", bytes)
    await wire.aclose()


async def test_what_a_proxy_says_to_a_secure_connection_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiving() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        proxy.says(407)
        async with Client("https://service.invalid", attempts=1) as client:
            with pytest.raises(ApiUnreachable, match=r"407 Said through the proxy .*HTTPS_PROXY"):
                await client.get("job_1")
        assert proxy.received[0].path == "service.invalid:443"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
        ("HTTPS_PROXY", "http://["),
        ("HTTPS_PROXY", "http://proxy:port"),
        ("SSL_CERT_FILE", "/nowhere/cacert.pem"),
        ("SSL_CERT_DIR", "/nowhere/certs"),
    ],
)
async def test_the_clients_of_programs_raise_our_errors_alone(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv(variable, value)
    for client in (Client, SyncClient):
        with pytest.raises(ConfigurationError, match=variable):
            client("https://service.invalid")
        # without TLS, and on this machine, nothing of it is needed
        client("http://127.0.0.1:8000")
    with pytest.raises(ConfigurationError, match=variable):
        LiveWire("pubmed", "https://service.invalid", pace=no_wait, fixed={})


@pytest.mark.parametrize(
    "url", ["http://[", "127.0.0.1:8000", "ftp://a", "http://a:b", "http://", "", "http://a b"]
)
async def test_an_address_that_is_none_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="base_url is no base URL"):
        Client(url)
    with pytest.raises(ConfigurationError, match=r"^HERE "):
        checked_url(url, variable="HERE")


@pytest.mark.parametrize("tenant", ["é", "a\nb", "", "a b"])
async def test_a_tenant_that_is_none_is_an_invalid_query(tenant: str) -> None:
    with pytest.raises(InvalidQuery, match="tenant"):
        Client(tenant=tenant)


async def test_a_certificate_that_is_not_trusted_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, _ = tls_for("localhost", tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    tls_for("localhost", other)
    monkeypatch.setenv("SSL_CERT_FILE", str(other / PEM))
    async with receiving(server) as receiver:
        url = f"https://localhost:{receiver.port}"
        async with http_client(url) as client:
            with pytest.raises(httpx2.ConnectError) as caught:
                await client.get(url)
        said = reason(caught.value, url)
        assert said.startswith(
            f"its certificate is not trusted with the certificates of SSL_CERT_FILE={other}"
        )
        # the authority of a service on this machine counts, too
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / PEM))
        async with http_client(url) as client:
            assert (await client.get(url)).status_code == 204


async def test_webhooks_know_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(variable, "socks5://nowhere")
    await Delivery().aclose()


def test_one_module_makes_the_clients() -> None:
    """Any other would meet the environment without the checks."""
    makers = {"AsyncClient", "Client", "create_ssl_context"}
    found = set()
    for package in ("workers", "orchestrator", "strategies", "policies", "prompts", "posology"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                of, name = node.func.value, node.func.attr
                if isinstance(of, ast.Name) and of.id in ("httpx", "httpx2") and name in makers:
                    found.add(path.relative_to(ROOT).as_posix())
    assert found == {"posology/network/clients.py", "posology/network/certificates.py"}


def test_a_reason_has_a_word_for_every_failure() -> None:
    assert reason(httpx2.ReadTimeout("late"), REMOTE) == "ReadTimeout"
    assert reason(Unusable("cut"), REMOTE) == "Unusable"


async def test_tenants_see_no_proxy_and_no_file_of_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.corp:3128")
    told = reason(httpx2.ConnectError("x"), "https://service.invalid")
    assert (
        public(f"no usable reply ({told}): try again")
        == "no usable reply (ConnectError): try again"
    )
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/corp/ca.pem")
    failed = ssl.SSLCertVerificationError()
    failed.verify_message = "self-signed"
    assert "/etc/corp" in distrust(failed)
    assert "/etc/corp" not in public(distrust(failed))
