from __future__ import annotations

from decimal import Decimal

import pytest

from orchestrator.budget import _floor, lease_for
from orchestrator.settings import Settings, load_settings, models
from posology.budget.ledger.base import LEASE
from posology.errors import ConfigurationError, InputError
from posology.llm.pace import LOCAL
from posology.published.base import descriptions


def test_the_sdks_own_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    settings = load_settings()
    key = settings.credentials("openai").api_key
    assert key is not None
    assert key.get_secret_value() == "sk-secret"
    assert settings.credentials("anthropic").base_url == "http://127.0.0.1:1"
    assert "sk-secret" not in repr(settings)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setenv("POSOLOGY_ATTEMPTS", "")
    settings = load_settings()
    assert settings.credentials("openai").api_key is None
    assert settings.attempts == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POSOLOGY_ATTEMPTS", "many"),
        ("POSOLOGY_ATTEMPTS", "0"),
        ("POSOLOGY_CALL_TIMEOUT", "-1"),
        ("POSOLOGY_MAX_TOKENS", "1"),
        ("POSOLOGY_MAX_TOKENS", "200001"),
        ("POSOLOGY_RETENTION_DAYS", "0"),
        ("POSOLOGY_RETENTION_DAYS", "inf"),
        ("POSOLOGY_SHUTDOWN_GRACE", "-1"),
        ("POSOLOGY_LEASE", "1"),
        ("POSOLOGY_WORKER_CONCURRENCY", "0"),
        ("POSOLOGY_MACHINE_DOLLARS_PER_HOUR", "-1"),
        ("POSOLOGY_MACHINE_DOLLARS_PER_HOUR", "nan"),
        ("POSOLOGY_MACHINE_UTILISATION", "0"),
        ("POSOLOGY_LOG_FORMAT", "loudest"),
        ("POSOLOGY_LOG_LEVEL", "loudest"),
    ],
)
def test_a_wrong_variable_is_named_and_its_value_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert name in str(caught.value)
    assert repr(value) not in str(caught.value)
    assert caught.value.exit_code == 4


def test_a_policy_that_there_is_not_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POSOLOGY_POLICY", "router:qtable=off")
    assert load_settings().policy == "router:qtable=off"
    monkeypatch.setenv("POSOLOGY_POLICY", "routre")
    with pytest.raises(ConfigurationError, match=r"POSOLOGY_POLICY: .*'routre'"):
        load_settings()


def test_compressors_models_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_COMPRESSOR_MODEL", "provence=/a/b, summarization=x/y ,")
    assert models(load_settings().compressor_model) == {
        "provence": "/a/b",
        "summarization": "x/y",
    }
    for wrong in ("provence", "provence=", "=x", "a=1,a=2"):
        monkeypatch.setenv("POSOLOGY_COMPRESSOR_MODEL", wrong)
        with pytest.raises(ConfigurationError, match="POSOLOGY_COMPRESSOR_MODEL"):
            load_settings()


def test_a_machine_s_price_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().machine_dollars_per_hour == Decimal("0.10")
    for off in ("off", "None"):
        monkeypatch.setenv("POSOLOGY_MACHINE_DOLLARS_PER_HOUR", off)
        assert load_settings().machine_dollars_per_hour is None
    monkeypatch.setenv("POSOLOGY_MACHINE_DOLLARS_PER_HOUR", "0.485")
    assert load_settings().machine_dollars_per_hour == Decimal("0.485")


def test_the_first_variable_of_a_setting_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert load_settings().aws_region == "eu-west-1"
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert load_settings().aws_region == "us-west-2"


def test_the_case_of_a_variable_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("posology_attempts", "7")
    assert load_settings().attempts == 7


def test_what_is_given_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_ATTEMPTS", "7")
    assert Settings.model_validate({"POSOLOGY_ATTEMPTS": 3}).attempts == 3
    assert Settings(POSOLOGY_ATTEMPTS=3).attempts == 3


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_states_its_default(name: str) -> None:
    field = Settings.model_fields[name]
    text = " ".join(descriptions(Settings)[name].split())
    assert "Default: " in text
    stated = text.rpartition("Default: ")[2].lower()
    if isinstance(field.default, bool | int | str | Decimal) and field.default != "":
        assert str(field.default).lower() in stated
    elif isinstance(field.default, float):
        assert f"{field.default:g}" in stated


@pytest.mark.parametrize(
    ("address", "floor", "expected"),
    [
        ("http://127.0.0.1:8080/v1", None, LOCAL),
        ("http://localhost:8080/v1", "off", LOCAL),
        ("http://127.0.0.1:8080/v1", "5", 5.0),
        ("https://gateway.example/v1", None, None),
        ("https://gateway.example/v1", "5", 5.0),
        (None, None, None),
    ],
)
def test_a_server_on_this_machine_is_taken_for_a_slow_one(
    address: str | None, floor: str | None, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("OPENAI_BASE_URL", address),
        ("POSOLOGY_MIN_TOKENS_PER_SECOND", floor),
    ):
        if value is not None:
            monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.floor("openai") == expected
    assert settings.floor("anthropic") == (None if floor in (None, "off") else float(floor or 0))
    # a reservation lasts for the slowest
    assert _floor(settings) == expected
    monkeypatch.setenv("POSOLOGY_PRICES", "prices.toml")
    shadowed = load_settings()
    assert _floor(shadowed) == shadowed.floor("ollama") == (float(floor) if floor == "5" else LOCAL)
    monkeypatch.setenv("OLLAMA_HOST", "gpu.example:11434")
    assert load_settings().floor("ollama") == (None if floor in (None, "off") else 5.0)


def test_a_reservation_outlasts_the_deadline_of_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_CALL_DEADLINE", "600")
    monkeypatch.setenv("POSOLOGY_CALL_TIMEOUT", "60")
    assert lease_for(load_settings()) == 660
    monkeypatch.setenv("POSOLOGY_CALL_DEADLINE", "10")
    monkeypatch.setenv("POSOLOGY_CALL_TIMEOUT", "5")
    assert lease_for(load_settings()) == LEASE


def test_a_model_s_base_url_may_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMACPP_BASE_URL", "http://127.0.0.1:1")
    settings = Settings()
    other = settings.reached_at("llamacpp:qwen3", "http://127.0.0.1:2")
    assert other.address("llamacpp") == "http://127.0.0.1:2"
    assert other.environment()["LLAMACPP_BASE_URL"] == "http://127.0.0.1:2"
    assert settings.address("llamacpp") == "http://127.0.0.1:1"
    assert settings.reached_at("llamacpp:qwen3", None) == settings
    with pytest.raises(InputError, match="gguf:here has no base URL"):
        settings.reached_at("gguf:here", "http://127.0.0.1:2")
