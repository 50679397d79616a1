"""Exported models on disk: made once, by one process, and found by all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from posology.index.embedders.card import Card

#: parts of a model's files that are not looked at for its key: weights have a digest of their own
_WEIGHTS = frozenset({".safetensors", ".bin", ".onnx", ".h5", ".ot", ".msgpack", ".data"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """The files of an exported model."""

    folder: Path

    @property
    def model(self) -> Path:
        """The encoder."""
        return self.folder / "model.onnx"

    @property
    def tokenizer(self) -> Path:
        """In the JSON of ``tokenizers``."""
        return self.folder / "tokenizer.json"

    def card(self) -> Card:
        """The model's card.

        Raises:
            ValueError: it is none.
        """
        return Card.parse((self.folder / "card.json").read_text(encoding="utf-8"))

    def is_complete(self) -> bool:
        """Whether it is there."""
        return self.model.is_file()


def key(folder: Path, weights: str, *made_with: str) -> str:
    """What an export hangs on: the model's files, the libraries that make it, and how.

    Args:
        folder: of the model.
        weights: digest of its weights.
        made_with: whatever else.
    """
    found = hashlib.sha256()
    libraries = [f"{name} {version(name)}" for name in ("onnx", "onnxruntime", "torch")]
    for part in (weights, *libraries, *made_with):
        found.update(part.encode() + b"\0")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in _WEIGHTS:
            found.update(str(path.relative_to(folder)).encode() + b"\0")
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def find_or_make(cache: Path, name: str, make: Callable[[], tuple[bytes, str, Card]]) -> Exported:
    """The export of that name, made if nobody has made it.

    Of several processes one makes it and the others wait. What is there is whole: it is written under
    another name and renamed.

    Args:
        cache: the folder of all exports.
        name: its key.
        make: gives the encoder, the tokenizer and the card.

    Raises:
        OSError: the folder cannot be written to.
    """
    found = Exported(folder=cache / name)
    if found.is_complete():
        return found
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{name}.lock"):
        if found.is_complete():
            return found
        model, tokenizer, card = make()
        draft = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=cache))
        try:
            begun = Exported(folder=draft)
            _write(begun.model, model)
            _write(begun.tokenizer, tokenizer.encode())
            _write(draft / "card.json", card.dump().encode())
            draft.chmod(0o755)  # a temporary folder is private, a cache may be shared
            draft.rename(found.folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return found


def _write(path: Path, content: bytes) -> None:
    """To the disk: else a machine that loses power may have the folder's new name, and files without content."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
