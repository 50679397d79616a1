"""The real Redis of the integration tests, for contracts that hold over it."""

from __future__ import annotations

from tests.integration import conftest as real

redis_url = real.redis_url
tenant = real.tenant
