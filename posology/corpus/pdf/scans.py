"""Runs OCR in a process of its own (:mod:`posology.corpus.ocr`), page by page as they are asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

#: bytes of address space of the process, which uses about 0.8 GB, and seconds of processor time of a page, which needs 5 to 10
MAX_MEMORY = 3 << 30
MAX_SECONDS = 120
#: processes that may end by themselves before the rest of a file's pages is given up
_STARTS = 3
_MAX_LINE = 10_000_000
_SCRIPT = Path(__file__).parents[1] / "ocr" / "__main__.py"


def available() -> bool:
    """Return whether the packages of the extra ``ocr`` are installed."""
    return all(find_spec(name) is not None for name in ("rapidocr", "cv2"))


class Scans:
    """The pages of one file, as OCR reads them. The models are loaded with the first page."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def read(self, number: int) -> dict[str, Any]:
        """Return what is read of a page, see :mod:`posology.corpus.ocr`.

        Args:
            number: of the page, counted from 1.
        """
        if self._process is None:
            if self._starts == _STARTS:
                return {"wrong": f"not read by OCR, which stopped at {_STARTS} pages before"}
            self._starts += 1
            self._process = self._start()
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        try:
            asked.write(b"%d\n" % number)
            asked.flush()
            line = answered.readline(_MAX_LINE)
        except BrokenPipeError:
            line = b""
        if line.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            return reply
        self.close()
        return {"wrong": "OCR stopped: the page needs too much memory or time, or is damaged"}

    def close(self) -> None:
        """End the process, also in the middle of a page."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        limits = map(str, (MAX_MEMORY, MAX_SECONDS))
        # -P: beside the script are modules that must not hide others
        command = [sys.executable, "-P", str(_SCRIPT), str(self._path.absolute()), *limits]
        return subprocess.Popen(  # noqa: S603 - our own program; the file's path is its argument
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
