"""The ledgers that every test here runs over."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from posology.budget.ledger.base import Ledger
from tests.integration.ledger.helpers import Desk, open_desk


@pytest.fixture(params=["memory", "redis"])
async def desk(request: pytest.FixtureRequest, tenant: str) -> AsyncIterator[Desk]:
    # looked up only where it is needed, so that the ledger in memory is tested without any Redis
    url = "" if request.param == "memory" else request.getfixturevalue("redis_url")
    async with open_desk(request.param, tenant, url) as opened:
        yield opened


@pytest.fixture
def ledger(desk: Desk) -> Ledger:
    return desk.ledger()
