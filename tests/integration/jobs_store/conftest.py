"""A bench for every test that drives the job store's scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.jobs_store.helpers import Bench, open_bench


@pytest.fixture
async def bench(redis_url: str, tenant: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url, tenant) as opened:
        yield opened
