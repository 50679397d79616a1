"""A call to ask with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from posology.types import Call
from tests.support.calls import a_call


@pytest.fixture
def make_call() -> Callable[..., Call]:
    return a_call
