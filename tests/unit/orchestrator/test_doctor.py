"""What ``posology doctor`` finds, and its exit status."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from posology.errors import ConfigurationError
from posology.testing import StubProvider
from posology.testing.local_servers import llamacpp_documents

SCHEMA = Path(__file__).resolve().parents[3] / "docs" / "schema" / "doctor.json"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSOLOGY_EMBEDDER", str(tiny_encoder))


def doctor(*words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    done = CliRunner().invoke(app, ["doctor", "--json", *words])
    out = json.loads(done.stdout)
    jsonschema.validate(out, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert out["ok"] is (done.exit_code == 0)
    return done.exit_code, {one["name"]: one for one in out["checks"]}


def test_a_machine_without_anything_is_fine_with_remarks() -> None:
    status, found = doctor()
    assert status == 0
    assert list(found) == [
        "python", "configuration", "redis", "disk", "memory", "encoder", "index", "keys", "model", "servers",
        "network", "ports",
    ]  # fmt: skip
    assert (found["encoder"]["ok"], found["redis"]["ok"]) == (True, True)
    assert (found["index"]["ok"], found["keys"]["ok"]) == (None, None)
    assert "posology ingest" in found["index"]["remedy"]


@pytest.mark.parametrize(
    ("variable", "value", "check"),
    [
        ("POSOLOGY_REDIS_URL", "redis://127.0.0.1:1/0", "redis"),
        ("POSOLOGY_REDIS_URL", "no address", "redis"),
        ("POSOLOGY_EMBEDDER", "/nowhere", "encoder"),
        ("POSOLOGY_INDEX", "/nowhere", "index"),
        ("POSOLOGY_MODEL", "openai:gpt-4o-mini", "keys"),
        ("POSOLOGY_ATTEMPTS", "0", "configuration"),
        ("ALL_PROXY", "socks4://me:s3crt@proxy:1", "network"),
        ("HTTPS_PROXY", "http://proxy:port", "network"),
        ("SSL_CERT_FILE", "/nowhere.pem", "network"),
        ("SSL_CERT_DIR", "/nowhere", "network"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(
    variable: str, value: str, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    status, found = doctor()
    assert status == ConfigurationError.exit_code
    assert [name for name, one in found.items() if one["ok"] is False] == [check]
    assert found[check]["remedy"]
    assert "s3crt" not in str(found)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        # the model of this machine needs no proxy
        ("HTTPS_PROXY", "http://me:s3crt@127.0.0.1:1", "http://***@127.0.0.1:1 (HTTPS_PROXY) does not"),
        ("REQUESTS_CA_BUNDLE", "/nowhere.pem", "/nowhere.pem: no such file (read only for"),
    ],
)  # fmt: skip
def test_what_may_be_missed_is_a_remark(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    status, found = doctor()
    assert (status, found["network"]["ok"]) == (0, None)
    assert said in found["network"]["found"]
    assert found["network"]["remedy"]


def test_a_proxy_before_the_model_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_MODEL", "openai:gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setenv("ALL_PROXY", address)
        found = doctor()[1]
        assert found["network"]["found"].startswith(f"proxy {address} (ALL_PROXY)")
    status, found = doctor()
    assert (status, found["network"]["ok"]) == (ConfigurationError.exit_code, False)


@pytest.mark.slow
def test_a_server_that_never_replies_is_given_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("POSOLOGY_REDIS_URL", f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        status, found = doctor()
    assert (status, found["redis"]["ok"]) == (4, False)


def test_no_key_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-indeed")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0
    assert "keys of openai" in done.stdout
    assert "sk-very" not in done.output


def test_a_model_server_that_runs_is_named_with_the_option_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with StubProvider(documents=llamacpp_documents("qwen3", window=16_384, slots=2)) as stub:
        monkeypatch.setenv("LLAMACPP_BASE_URL", stub.url)
        _, found = doctor()
        done = CliRunner().invoke(app, ["init", "posology.toml"])
        said = f"llama.cpp at {stub.url} serves qwen3 (window 16,384, 2 at a time)"
        monkeypatch.setenv("POSOLOGY_MODEL", "llamacpp:other")
        status, wrong = doctor()
    assert f"{said}: --model llamacpp:qwen3" in found["servers"]["found"]
    assert said in done.stdout
    assert f'# {said}:\n# model = "llamacpp:qwen3"' in Path("posology.toml").read_text()
    assert (status, wrong["servers"]["ok"]) == (ConfigurationError.exit_code, False)
    assert "it serves llamacpp:qwen3" in wrong["servers"]["found"]


def test_a_configured_model_whose_server_does_not_run_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSOLOGY_MODEL", "vllm:qwen3")
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9")
    status, found = doctor()
    assert status == ConfigurationError.exit_code
    assert found["servers"]["found"] == "no server answers for vllm:qwen3"
