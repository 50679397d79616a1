"""Azure OpenAI, Bedrock and Vertex AI through the SDKs' clients, over real sockets: URLs, headers, bodies, credentials."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from anthropic._constants import ANTHROPIC_API_VERSION
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import BaseModel, TypeAdapter

from orchestrator.connections import Connections
from orchestrator.settings import load_settings
from posology import errors
from posology.llm.accounting import Account
from posology.llm.models.effort import effort_of
from posology.llm.providers.table import PROVIDERS, ProviderOptions
from posology.testing import Recorded, Reply, Status, StubProvider
from posology.types import Call, Finish, Stage, Usage
from tests.support.calls import call_to
from tests.support.clouds import KEY, TOKEN, WHOLE, adapter_to
from tests.support.private_parts import HEADERS

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("streamed")]


MODELS = {
    "azure": "azure:gpt-6-luna",
    "bedrock": "bedrock:eu.anthropic.claude-haiku-5-5",
    "vertex": "vertex:claude-haiku-5-5",
}
CLOUDS = list(MODELS)
USAGE = Usage(input=800, output=60)
USER = {"role": "user", "content": "Does aspirin prevent stroke?"}


class Verdict(BaseModel):
    verdict: bool


def a_call(model: str, **changes: Any) -> Call:
    given: dict[str, Any] = {
        "stage": Stage.EXTRACT,
        "max_tokens": 321,
        "effort": effort_of(model, Stage.EXTRACT),
    }
    return call_to(model, system="Answer from the passages.", **given, **changes)


async def sent(cloud: str, call: Call, **options: Any) -> Recorded:
    with StubProvider([Reply(text='{"verdict": true}', usage=USAGE)]) as stub:
        adapter = adapter_to(cloud, stub, **options)
        completion = await adapter(call)
        await adapter.aclose()
        assert (completion.usage, completion.finish) == (USAGE, Finish.STOP)
        assert completion.request_id == "req_1"
        (request,) = stub.requests
    return request


async def test_azure_names_the_deployment_in_the_path_and_keeps_the_model_s_parameters() -> None:
    request = await sent(
        "azure",
        a_call(MODELS["azure"], schema=Verdict),
        deployments={"gpt-6-luna": "fast eu"},
    )
    path, _, query = request.path.partition("?")
    assert path == "/openai/deployments/fast%20eu/chat/completions"
    assert query == "api-version=2025-04-01-preview"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    wanted = request.json["response_format"]
    assert (wanted["type"], wanted["json_schema"]["strict"]) == ("json_schema", True)
    TypeAdapter(CompletionCreateParamsStreaming).validate_python(request.json, strict=True)
    # no cache option, which Azure does not document
    assert {k: v for k, v in request.json.items() if k != "response_format"} == {
        "model": "fast eu",
        "messages": [{"role": "system", "content": "Answer from the passages."}, USER],
        "max_completion_tokens": 321,
        "reasoning_effort": "none",
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_a_deployment_without_an_entry_has_the_model_s_name() -> None:
    request = await sent("azure", a_call("azure:gpt-4o-mini"))
    assert request.path.startswith("/openai/deployments/gpt-4o-mini/chat/completions?")
    assert request.json["temperature"] == 0


@pytest.mark.parametrize("cloud", ["bedrock", "vertex"])
async def test_claude_s_parameters_are_those_of_anthropic_s_api(cloud: str) -> None:
    request = await sent(cloud, a_call(MODELS[cloud], schema=Verdict))
    path = {
        "bedrock": "/model/eu.anthropic.claude-haiku-5-5/invoke-with-response-stream",
        "vertex": "/v1/projects/trials/locations/eu/publishers/anthropic/models/claude-haiku-5-5:streamRawPredict",
    }[cloud]
    assert request.path == path
    assert request.headers["authorization"] == f"Bearer {KEY if cloud == 'bedrock' else TOKEN}"
    config = request.json.pop("output_config")
    assert (config["effort"], config["format"]["type"]) == ("low", "json_schema")
    # Bedrock's path says it
    assert request.json.pop("stream", None) is (None if cloud == "bedrock" else True)
    assert request.json == {
        "anthropic_version": ANTHROPIC_API_VERSION,
        "system": "Answer from the passages.",
        "messages": [USER],
        "max_tokens": 321,
        "thinking": {"type": "disabled"},
    }
    body = {**request.json, "model": "m", "output_config": config, "stream": True}
    del body["anthropic_version"]
    TypeAdapter(MessageCreateParamsStreaming).validate_python(body, strict=True)


async def test_without_a_key_bedrock_s_requests_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret/secret")
    # as Compose sets a variable without a value
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "")
    request = await sent("bedrock", a_call(MODELS["bedrock"]), api_key=None, region="eu-north-1")
    scheme, _, rest = request.headers["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    moment = request.headers["x-amz-date"]
    assert scheme == "AWS4-HMAC-SHA256"
    assert parts["Credential"] == f"AKIAEXAMPLE/{moment[:8]}/eu-north-1/bedrock/aws4_request"
    # the signature of what arrived, by the same secret
    names = parts["SignedHeaders"].split(";")
    assert {"host", "x-amz-date", "content-type"} <= set(names)
    assert signature(request, names, moment) == parts["Signature"]


def signature(request: Recorded, names: list[str], moment: str) -> str:
    """The signature of a request's headers; its body is signed as the bytes that the SDK sends."""
    body = json.dumps(request.json, separators=(",", ":"), ensure_ascii=False).encode()
    again = AWSRequest(
        method="POST",
        url=f"http://{request.headers['host']}{request.path}",
        headers={name: request.headers[name] for name in names},
        data=body,
    )
    again.context["timestamp"] = moment
    signer = SigV4Auth(Credentials("AKIAEXAMPLE", "secret/secret"), "bedrock", "eu-north-1")
    return str(
        signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    )


async def test_a_bedrock_without_credentials_is_told_unsent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with StubProvider([]) as stub:
        adapter = adapter_to("bedrock", stub, api_key=None, region="eu-south-1")
        with pytest.raises(errors.AuthenticationFailed, match="AWS_BEARER_TOKEN_BEDROCK") as caught:
            await adapter(a_call(MODELS["bedrock"]))
        await adapter.aclose()
        assert not stub.requests
    assert caught.value.usage == Usage()


@contextmanager
def token_server(status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """Google's token endpoint: its address, and the kinds of grants that it was asked for."""
    grants: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            grants.extend(parse_qs(body)["grant_type"])
            error = {"error": "invalid_grant", "error_description": "Account disabled."}
            reply = {"access_token": TOKEN, "expires_in": 3600} if status == 200 else error
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/token", grants
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def service_account(folder: Path, token_uri: str) -> Path:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = folder / "account.json"
    account = {
        "type": "service_account",
        "client_email": "qa@trials.iam.gserviceaccount.com",
        "private_key": pem.decode(),
        "token_uri": token_uri,
        "project_id": "trials",
    }
    path.write_text(json.dumps(account), encoding="utf-8")
    return path


async def test_vertex_takes_a_token_of_google_s_default_credentials_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with token_server() as (uri, grants), StubProvider([Reply(text="yes")] * 2) as stub:
        account = service_account(tmp_path, uri)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
        adapter = adapter_to("vertex", stub, credentials=None)
        await adapter(a_call(MODELS["vertex"]))
        await adapter(a_call(MODELS["vertex"]))
        await adapter.aclose()
    assert [r.headers["authorization"] for r in stub.requests] == [f"Bearer {TOKEN}"] * 2
    assert grants == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


async def test_a_refused_token_is_told_without_google_s_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with token_server(status=400) as (uri, _), StubProvider([]) as stub:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(tmp_path, uri)))
        adapter = adapter_to("vertex", stub, credentials=None)
        with pytest.raises(errors.AuthenticationFailed, match="gcloud auth") as caught:
            await adapter(a_call(MODELS["vertex"]))
        await adapter.aclose()
        assert not stub.requests
    assert caught.value.usage == Usage()
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"message": "Input is too long for requested model."},
            errors.ContextTooLong,
        ),
        (
            403,
            {"message": "You don't have access to the model."},
            errors.PermissionRefused,
        ),
        (
            404,
            {"message": "The provided model identifier is invalid."},
            errors.ModelNotFound,
        ),
    ],
)
@pytest.mark.parametrize("cloud", CLOUDS)
async def test_the_clouds_errors_have_our_types(
    cloud: str, status: int, body: Any, kind: type[errors.ProviderError]
) -> None:
    with StubProvider([Status(code=status, body=json.dumps(body).encode())]) as stub:
        adapter = adapter_to(cloud, stub)
        with pytest.raises(kind) as caught:
            await adapter(a_call(MODELS[cloud]))
        await adapter.aclose()
        # the SDK tried once
        assert len(stub.requests) == 1
    assert type(caught.value) is kind
    assert (caught.value.provider, caught.value.usage) == (cloud, Usage())


@pytest.mark.parametrize("cloud", CLOUDS)
async def test_the_environment_is_not_asked(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "ANTHROPIC_BEDROCK", "ANTHROPIC_VERTEX"):
        for rest in ("API_KEY", "AD_TOKEN", "AUTH_TOKEN", "ORG_ID", "PROJECT_ID"):
            monkeypatch.setenv(f"{name}_{rest}", "ambient")
        monkeypatch.setenv(f"{name}_BASE_URL", "http://ambient.invalid")
        monkeypatch.setenv(f"{name}_CUSTOM_HEADERS", "x-ambient: ambient")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://ambient.invalid")
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "ambient")
    monkeypatch.setenv("AWS_REGION", "ambient")
    monkeypatch.setenv("CLOUD_ML_REGION", "ambient")
    monkeypatch.setenv("OPENAI_API_VERSION", "ambient")
    request = await sent(cloud, a_call(MODELS[cloud]))
    sdk = HEADERS["openai" if cloud == "azure" else "anthropic"]
    assert "ambient" not in str(request.headers) + request.path, sdk.changed


def connect(cloud: str, options: ProviderOptions) -> Any:
    row = PROVIDERS[cloud]
    assert row.connect is not None
    return row.connect(options)


@pytest.mark.parametrize(
    ("cloud", "address"),
    [
        ("azure", "https://trials.openai.azure.com/openai/"),
        ("bedrock", "https://bedrock-runtime.eu-west-1.amazonaws.com"),
        ("vertex", "https://europe-west1-aiplatform.googleapis.com/v1/"),
    ],
)
async def test_the_address_is_that_of_resource_or_region(cloud: str, address: str) -> None:
    adapter = connect(cloud, WHOLE[cloud])
    assert str(adapter._sdk.base_url) == address
    await adapter.aclose()


@pytest.mark.parametrize(
    ("cloud", "missing"),
    [
        ("azure", "AZURE_OPENAI_ENDPOINT"),
        ("azure", "OPENAI_API_VERSION"),
        ("azure", "AZURE_OPENAI_API_KEY"),
        ("bedrock", "AWS_REGION"),
        ("vertex", "CLOUD_ML_REGION"),
        ("vertex", "ANTHROPIC_VERTEX_PROJECT_ID"),
    ],
)
def test_a_missing_setting_is_named(cloud: str, missing: str) -> None:
    whole = WHOLE[cloud]
    options = ProviderOptions(
        api_key=None if missing.endswith("API_KEY") else whole.api_key,
        base_url=None if missing.endswith("ENDPOINT") else whole.base_url,
        more={name: value for name, value in whole.more.items() if name != missing},
    )
    with pytest.raises(errors.ConfigurationError, match=missing):
        connect(cloud, options)


def test_a_missing_key_of_azure_names_the_provider() -> None:
    with pytest.raises(errors.MissingKey, match="keys set azure`"):
        connect("azure", ProviderOptions(base_url="https://a.example", more=WHOLE["azure"].more))


@pytest.mark.parametrize(
    ("cloud", "package", "extra"),
    [("bedrock", "boto3", "bedrock"), ("vertex", "google.auth", "vertex")],
)
def test_a_missing_package_is_named_with_its_extra(
    cloud: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    options = ProviderOptions(more=WHOLE[cloud].more)
    with pytest.raises(errors.ConfigurationError, match=rf"posology\[{extra}\]"):
        connect(cloud, options)


@pytest.mark.parametrize("text", ["gpt-6-luna", "gpt-6-luna=", "=fast", "m=a,m=b"])
def test_deployments_of_another_form_are_refused(text: str) -> None:
    more = {**WHOLE["azure"].more, "AZURE_OPENAI_DEPLOYMENTS": text}
    options = ProviderOptions(api_key=KEY, base_url="https://a.example", more=more)
    with pytest.raises(errors.ConfigurationError, match="MODEL=DEPLOYMENT"):
        connect("azure", options)


async def test_bedrock_s_other_models_are_refused_unsent() -> None:
    with StubProvider([]) as stub:
        adapter = adapter_to("bedrock", stub)
        with pytest.raises(errors.UnknownModel, match="not Claude"):
            await adapter(a_call("bedrock:meta.llama3-1-8b-instruct-v1:0"))
        await adapter.aclose()


async def test_the_settings_reach_the_adapter_and_the_ledger_has_the_cloud_s_price(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with StubProvider([Reply(text="yes", usage=Usage(input=1_000, output=100))]) as stub:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", stub.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
        monkeypatch.setenv("AZURE_OPENAI_DEPLOYMENTS", "gpt-6-luna=fast, gpt-6-sol=deep")
        monkeypatch.setenv("OPENAI_API_VERSION", "2025-04-01-preview")
        account = Account()
        opened = Connections(load_settings(), offline=lambda: pytest.fail("offline"))
        await opened.complete("azure:gpt-6-luna", account)(a_call("azure:gpt-6-luna"))
        await opened.aclose()
        (request,) = stub.requests
    assert request.path.startswith("/openai/deployments/fast/")
    (attempt,) = account.attempts
    # 1.2 times the list price of $0.10 and $0.50 per million
    assert str(attempt.cost) == "0.00018"


async def test_a_deployment_s_own_name_has_no_price() -> None:
    opened = Connections(load_settings(), offline=lambda: pytest.fail("offline"))
    with pytest.raises(errors.UnpricedModel):
        opened.prices.check("azure:fast")
    await opened.aclose()
