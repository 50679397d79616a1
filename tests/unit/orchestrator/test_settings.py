from __future__ import annotations

import pytest

from orchestrator.settings import DEFAULT_MODEL, load_settings
from posology.errors import ConfigurationError


def test_defaults_need_no_environment() -> None:
    settings = load_settings()
    assert settings.model == DEFAULT_MODEL
    assert settings.openai_api_key is None
    assert settings.index is None


def test_the_sdks_own_variables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    settings = load_settings()
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-secret"
    assert settings.anthropic_base_url == "http://127.0.0.1:1"
    assert "sk-secret" not in repr(settings)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setenv("POSOLOGY_ATTEMPTS", "")
    settings = load_settings()
    assert settings.openai_api_key is None
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


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().model = "x"
