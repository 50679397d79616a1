"""What every test stands on."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from orchestrator.environment import prepare_libraries
from orchestrator.logs import events
from posology.llm.providers.table import variables

# before torch, transformers or LanceDB is imported
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# a developer's configuration files and stored keys are not read
os.environ["POSOLOGY_CONFIG"] = "off"
prepare_libraries()

# A busy machine is slow, and no test is about speed. `make test` tries the same few examples wherever it runs, so that
# what fails there was broken by the change at hand; `make fuzz` looks for others.
# A function's fixtures may be shared by its examples: those that may not are made by the test itself.
UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("posology", UNHURRIED, derandomize=True, max_examples=25)
settings.register_profile("fuzz", UNHURRIED, print_blob=True, max_examples=500)
settings.load_profile("posology")

_SECRETS = (
    *variables(), "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE",
)  # fmt: skip

#: of the network; proxies besides
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "SSLKEYLOGFILE",
)

#: variables of the tests themselves
_KEPT = ("POSOLOGY_CONFIG", "POSOLOGY_EXPECT_SITE")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of slow tests alone are not even imported by ``make test``."""
    if "not slow" not in config.getoption("markexpr") or collection_path.suffix != ".py":
        return None
    slow = "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8")
    return slow or None


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's keys, settings and proxies never reach a test."""
    for name in list(os.environ):
        if (
            name in (*_SECRETS, *_CERTIFICATES)
            or name.lower().endswith("_proxy")
            or (name.startswith("POSOLOGY_") and name not in _KEPT)
        ):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Logs are the process's: what a command configures must not reach the next test."""
    loggers = [logging.getLogger(name) for name in (None, "posology", "orchestrator", "workers")]
    before = [(one, one.level, list(one.handlers)) for one in loggers]
    yield
    for one, level, handlers in before:
        one.setLevel(level)
        one.handlers[:] = handlers
    logging.captureWarnings(capture=False)
    events.allow_questions(allowed=False)


@pytest.fixture(autouse=True, scope="session")
def _no_provider() -> Iterator[None]:
    """No test reaches a provider: only loopback addresses may be called."""
    from posology.testing import forbid_remote_providers

    with forbid_remote_providers():
        yield


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sentence-transformers model of random weights."""
    from posology.testing.models.encoder import save_tiny_encoder

    return save_tiny_encoder(tmp_path_factory.mktemp("tiny-encoder"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The shared data sets; tests that need them skip where they are absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POSOLOGY_DATA", default))
    if not (folder / "pool.jsonl.gz").exists():
        pytest.skip(f"the shared data sets are not at {folder}")
    return folder


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call asks for a stream, also those that a provider's own service would answer as a whole."""
    monkeypatch.setattr("posology.llm.providers.streaming.LONG", 0)
