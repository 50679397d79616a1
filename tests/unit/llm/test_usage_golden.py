"""Bodies as the providers document them, the buckets they stand for, and their price by hand."""

from __future__ import annotations

import httpx2
import pytest

from posology.budget.prices.book import packaged
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from tests.support.calls import a_call
from tests.unit.llm.usage_anthropic import ANTHROPIC, anthropic_body
from tests.unit.llm.usage_case import Case
from tests.unit.llm.usage_openai import OPENAI, openai_body

pytestmark = pytest.mark.anyio

CASES = [*OPENAI, *ANTHROPIC]


@pytest.mark.parametrize("case", CASES, ids=[f"{c.model}: {c.name}" for c in CASES])
async def test_a_reply_is_counted_and_priced_as_the_provider_bills_it(case: Case) -> None:
    openai = case.model.startswith("openai:")
    body = openai_body(case) if openai else anthropic_body(case)
    replies = httpx2.MockTransport(lambda _: httpx2.Response(200, json=body))
    async with httpx2.AsyncClient(transport=replies) as client:
        kind = OpenAIAdapter if openai else AnthropicAdapter
        adapter = kind(api_key="none", base_url="http://127.0.0.1:9", client=client)
        completion = await adapter(a_call(model=case.model))
    assert completion.usage == case.expected
    assert packaged().cost(case.model, completion.usage) == case.cost
    assert (completion.finish, completion.text) == (case.finish, case.text)
