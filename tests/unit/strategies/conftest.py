from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from posology.query import make_query
from posology.types import Passage, Query, Task
from tests.support.tasks import task_of

MakeTask: TypeAlias = Callable[..., Task]


def _make_task(*passages: Passage, query: Query | None = None) -> Task:
    return task_of(query or make_query("Does aspirin lower mortality?"), passages)


@pytest.fixture
def make_task() -> MakeTask:
    return _make_task
