"""Devices that torch is asked for are used as they are named, or refused."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from posology.devices import find_device
from posology.errors import DeviceUnavailable

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)


def test_the_cpu_is_always_there_and_needs_no_torch() -> None:
    program = (
        "import sys; from posology.devices import find_device\n"
        "sys.exit(find_device('cpu') != 'cpu' or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    assert find_device("cpu:0") == "cpu"


def test_auto_is_the_accelerator_where_there_is_one() -> None:
    import torch

    kind = "cuda" if torch.cuda.is_available() else "cpu"
    assert find_device() == find_device("auto") == find_device(None) == kind


# one that a machine may have too few of, one that holds no numbers, none, and none at all
@pytest.mark.parametrize("wanted", ["cuda:99", "meta", "abacus", ""])
def test_what_is_not_there_is_refused_by_name(wanted: str) -> None:
    with pytest.raises(DeviceUnavailable) as raised:
        find_device(wanted)
    assert repr(wanted) in raised.value.message
    assert "\n" not in raised.value.message
    assert raised.value.device == wanted
    assert pickle.loads(pickle.dumps(raised.value)).device == wanted
