"""The models that find lines on a picture and read them: PP-OCRv6, from the package rapidocr."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: processor threads of a model
_THREADS = 2
_FIND, _READ = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"
#: pixels: what the finder needs at least, and height, least and most width of a line as the reader sees it
_LEAST, _HEIGHT, _WIDTHS = 64, 48, (320, 3200)
_BLANK = 0
_DIGITS = frozenset("0123456789.,")
#: signs that are one in print, or mean the same: which of them it is makes no word less sure
_ALIKE = ("-–—−‐", "µμ")
#: probability of a space between two words; between letters of one it is below 0.001, and often 0.1 where lines are tight
_SPACE, _SPACE_OF_DIGITS = 0.03, 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A word of a line."""

    text: str
    #: where it begins and ends, shares of the line's width
    start: float
    end: float
    #: probability of its characters, by the model
    sure: float


class Models:
    """The models, loaded. They are not safe for use from several threads."""

    def __init__(self) -> None:
        # it imports what fetches models, and calls none of it
        from rapidocr.ch_ppocr_det.utils import DBPostProcess, DetPreProcess

        found = find_spec("rapidocr")
        assert found is not None
        assert found.origin is not None
        folder = Path(found.origin).parent / "models"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(_THREADS, os.cpu_count() or 1)
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # an arena would keep the memory of the largest page
        options.enable_cpu_mem_arena = False
        self._finder, self._reader = (
            onnxruntime.InferenceSession(
                str(folder / name), options, providers=["CPUExecutionProvider"]
            )
            for name in (_FIND, _READ)
        )
        known = self._reader.get_modelmeta().custom_metadata_map["character"]
        self._signs = ["", *known.splitlines(), " "]
        places = {sign: i for i, sign in enumerate(self._signs)}
        self._alike = [[places[one] for one in some if one in places] for some in _ALIKE]
        self._prepare = DetPreProcess(_LEAST, "min")
        # as rapidocr configures them
        self._boxes = DBPostProcess(
            thresh=0.3, box_thresh=0.5, max_candidates=1000, unclip_ratio=1.6, use_dilation=True
        )

    def find(self, picture: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the corners of each line, from its upper left one clockwise, shape ``(lines, 4, 2)``, in pixels.

        Args:
            picture: shape ``(height, width, 3)``.
        """
        boxes, _ = self._boxes(self._run(self._finder, self._prepare(picture)), picture.shape[:2])
        return np.asarray(boxes, dtype=float).reshape(-1, 4, 2)

    def read(self, line: NDArray[np.uint8]) -> list[Seen]:
        """Return the words of a line.

        Args:
            line: its picture, shape ``(height, width, 3)``.
        """
        import cv2

        least, most = _WIDTHS
        width = max(1, min(most, round(_HEIGHT * line.shape[1] / line.shape[0])))
        shown = np.zeros((1, 3, _HEIGHT, max(least, width)), dtype=np.float32)
        scaled = cv2.resize(line, (width, _HEIGHT)).astype(np.float32)
        shown[0, :, :, :width] = scaled.transpose(2, 0, 1) / 127.5 - 1
        chances = self._run(self._reader, shown)[0]
        for alike in self._alike:
            some = chances[:, alike]
            chances[:, alike] = 0
            chances[:, alike[int(some.sum(axis=0).argmax())]] = some.sum(axis=1)
        return list(self._words(chances, len(chances) * width / shown.shape[3]))

    def _words(self, chances: NDArray[np.float32], width: float) -> Iterator[Seen]:
        """Yield the words of a line's probabilities, shape ``(steps, signs)``, of which ``width`` steps are the line."""
        #: characters without spaces, and the steps where they begin and end
        signs: list[tuple[int, int, int]] = []
        step = 0
        for sign, group in groupby(chances.argmax(axis=1).tolist()):
            first, step = step, step + len(list(group))
            if sign not in (_BLANK, len(self._signs) - 1):
                signs.append((sign, first, step))
        spaces = [
            float(chances[one[2] - 1 : other[1] + 1, -1].max()) for one, other in pairwise(signs)
        ]
        digits = [self._signs[sign] in _DIGITS for sign, _, _ in signs]
        # 1 19 is no 119: of what parts digits, it must be known whether it is a space
        between = [one and other for one, other in pairwise(digits)]
        cuts = [
            i + 1
            for i, chance in enumerate(spaces)
            if chance > (_SPACE_OF_DIGITS if between[i] else _SPACE)
        ]
        known = [max(chance, 1 - chance) if between[i] else 1.0 for i, chance in enumerate(spaces)]
        for start, end in pairwise([0, *cuts, len(signs)] if signs else []):
            word = signs[start:end]
            parted = min(known[max(0, start - 1) : end], default=1.0)
            before = signs[start - 1][2] if start else 0
            after = signs[end][1] if end < len(signs) else len(chances)
            # half a step, since most characters are two or three wide
            yield Seen(
                text="".join(self._signs[sign] for sign, _, _ in word),
                start=max(0.0, (word[0][1] - 0.5) / width),
                end=min(1.0, (word[-1][2] + 0.5) / width),
                sure=parted * _chance(chances[before:after], [sign for sign, _, _ in word]),
            )

    @staticmethod
    def _run(model: Any, value: Any) -> Any:
        return model.run(None, {model.get_inputs()[0].name: value})[0]


def _chance(chances: NDArray[np.float32], signs: list[int]) -> float:
    """Return the probability of a word over all alignments: the forward variables of CTC.

    Graves et al. 2006, Connectionist Temporal Classification, section 4.1. A space counts as a blank: where a word begins is
    not in question.
    """
    labels = [_BLANK]
    for sign in signs:
        labels += [sign, _BLANK]
    of = chances[:, labels].astype(float)
    of[:, ::2] += chances[:, -1:]
    # from two labels before: not over a blank between equal characters
    over = [i > 1 and i % 2 == 1 and labels[i] != labels[i - 2] for i in range(len(labels))]
    forward = np.zeros(len(labels))
    forward[:2] = of[0, :2]
    for step in of[1:]:
        before = forward.copy()
        before[1:] += forward[:-1]
        before[2:] += np.where(over[2:], forward[:-2], 0.0)
        forward = before * step
    return float(forward[-2:].sum())
