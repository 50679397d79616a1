from __future__ import annotations

import pytest

from posology.llm.providers.replies.finishes import finish_of, gave_up
from posology.types import Finish


@pytest.mark.parametrize(
    ("names", "finish"),
    [
        ("stop STOP end_turn eos eos_token stop_sequence COMPLETE FINISH_REASON_STOP", Finish.STOP),
        ("length max_tokens MAX_TOKENS maxTokens Max-Tokens model_length", Finish.LENGTH),
        ("FINISH_REASON_MAX_TOKENS model_context_window_exceeded ERROR_LIMIT", Finish.LENGTH),
        ("content_filter CONTENT_FILTER ContentFiltered refusal SAFETY RECITATION", Finish.FILTERED),
        ("BLOCKLIST PROHIBITED_CONTENT SPII guardrail_intervened sensitive", Finish.FILTERED),
        ("tool_calls OTHER MALFORMED_FUNCTION_CALL pause_turn repetition", Finish.OTHER),
    ],
)  # fmt: skip
def test_a_name_counts_in_any_case_and_with_any_separators(names: str, finish: Finish) -> None:
    for name in names.split():
        assert finish_of(name) is finish, name
        assert not gave_up(name)


def test_a_filter_may_add_its_own_reason() -> None:
    assert finish_of("content_filter: PROHIBITED_CONTENT") is Finish.FILTERED


@pytest.mark.parametrize("name", [None, "", 7, ["stop"], {"type": "stop"}, "…"])
def test_what_is_no_name_is_another_reason(name: object) -> None:
    assert finish_of(name) is Finish.OTHER
    assert not gave_up(name)


@pytest.mark.parametrize("name", ["error", "ERROR", "abort", "network_error", "insufficient_system_resource"])  # fmt: skip
def test_a_server_that_gave_up_says_so(name: str) -> None:
    assert gave_up(name)
