"""Models are loaded one at a time: transformers' settings are the whole process's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from transformers.utils import logging

from posology.hub import loading


def test_models_are_loaded_one_at_a_time() -> None:
    together, inside, most = threading.Barrier(4), 0, 0

    def load() -> None:
        nonlocal inside, most
        together.wait()
        for _ in range(50):
            with loading():
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.0001)
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        for one in [pool.submit(load) for _ in range(4)]:
            one.result()
    assert most == 1


def test_loading_restores_what_it_changed() -> None:
    before = logging.is_progress_bar_enabled(), logging.get_verbosity()
    with loading(reports=False), loading():
        assert not logging.is_progress_bar_enabled()
        assert logging.get_verbosity() == logging.log_levels["error"]
    assert (logging.is_progress_bar_enabled(), logging.get_verbosity()) == before
