"""The compressors that the contract runs for, each built once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

pytest.register_assert_rewrite(
    "tests.contract.compressors.contract", "tests.support.compression_checks"
)

from tests.support.compression_harnesses import SPENDING, Made, build  # noqa: E402

Builder = Callable[[str], Made]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names: Sequence[str] = metafunc.cls.names if metafunc.cls else ()
    chosen = {
        "made": names,
        "reader": [name for name in names if name not in SPENDING],
        "rewriter": [name for name in names if name in SPENDING],
    }
    for fixture in chosen.keys() & set(metafunc.fixturenames):
        metafunc.parametrize(fixture, chosen[fixture], indirect=True)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Builds each compressor once."""
    known: dict[str, Made] = {}

    def get(name: str) -> Made:
        if name not in known:
            known[name] = build(name, tmp_path_factory.mktemp("compressor"))
        return known[name]

    return get


@pytest.fixture
def made(request: pytest.FixtureRequest, built: Builder) -> Made:
    return built(request.param)


@pytest.fixture
def reader(request: pytest.FixtureRequest, built: Builder) -> Made:
    """One that spends nothing."""
    return built(request.param)


@pytest.fixture
def rewriter(request: pytest.FixtureRequest, built: Builder) -> Made:
    """One that asks a model."""
    return built(request.param)
