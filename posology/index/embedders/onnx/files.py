"""Cache of exported models on disk: each is made once, by one process; failures are remembered.

A cache has, by the key of an export,

* ``KEY/``: the encoder, its tokenizer, its card, and ``SHA256SUMS`` with the digests of the three (``sha256sum -c``
  reads it). It is written under another name and renamed.
* ``KEY.failed.json``: the reason of a failed export, and the libraries that were used.
* ``KEY.lock``: locked by the process that makes the export.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from posology.durable import replace_file
from posology.index.embedders.card import Card
from posology.index.embedders.onnx.forward import NotExported

logger = logging.getLogger(__name__)

#: suffixes of files that are left out of a model's key: weights have a digest of their own
_WEIGHTS = frozenset({".safetensors", ".bin", ".onnx", ".h5", ".ot", ".msgpack", ".data"})
#: libraries that make an export, and others that can make it fail
_MAKERS = ("onnx", "onnxruntime", "torch")
_OTHERS = ("sentence-transformers", "transformers")
#: the files of an export
MODEL, TOKENIZER, CARD, SUMS = "model.onnx", "tokenizer.json", "card.json", "SHA256SUMS"
#: age in seconds at which partly written files of a killed process are deleted
_LEFT = 3_600.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Export:
    """An exported model."""

    #: the encoder in ONNX's format
    model: bytes
    #: JSON of ``tokenizers``
    tokenizer: str
    card: Card


class _NotWhole(Exception):
    """The files of a folder do not match their digests."""


def key(folder: Path, weights: str, *made_with: str) -> str:
    """Return the key of an export: the model's files, the libraries, and the settings.

    Args:
        folder: of the model.
        weights: digest of its weights.
        made_with: other settings.
    """
    found = hashlib.sha256()
    libraries = [f"{name} {version(name)}" for name in _MAKERS]
    for part in (weights, *libraries, *made_with):
        found.update(part.encode() + b"\0")
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in _WEIGHTS:
            found.update(str(path.relative_to(folder)).encode() + b"\0")
            found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def find_or_make(cache: Path, name: str, make: Callable[[], Export]) -> Export:
    """Return the export of a name; make it if it is missing or damaged.

    Of several processes, one makes it and the others wait. A failure is remembered until a library changes; the name
    changes with the model.

    Args:
        cache: the folder of all exports.
        name: its key.
        make: makes it.

    Raises:
        NotExported: the export fails, or failed before.
        OSError: the folder cannot be written.
    """
    folder, failure = cache / name, cache / f"{name}.failed.json"
    with suppress(_NotWhole):
        if (export := _read(folder)) is not None:
            return export
    _raise_known(failure)
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{name}.lock"):
        try:
            export = _read(folder)
        except _NotWhole as error:
            export = None
            logger.warning("export damaged, making it again folder=%s: %s", folder, error)
        if export is not None:
            return export
        _raise_known(failure)
        logger.info("preparing the encoder, once, about a minute")
        try:
            made = make()
        except NotExported as error:
            with suppress(OSError):
                _remember(failure, str(error))
            raise
        _delete_left(cache, name)
        return _keep(made, folder)


def _read(folder: Path) -> Export | None:
    """Read the export of a folder; ``None``: there is no such folder."""
    if not folder.is_dir():
        return None
    try:
        lines = (folder / SUMS).read_text(encoding="ascii").splitlines()
        digests = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        content = {name: (folder / name).read_bytes() for name in (MODEL, TOKENIZER, CARD)}
        for name, part in content.items():
            if hashlib.sha256(part).hexdigest() != digests.get(name):
                raise _NotWhole(f"{name} does not match {SUMS}")
        return Export(
            model=content[MODEL],
            tokenizer=content[TOKENIZER].decode(),
            card=Card.parse(content[CARD].decode()),
        )
    except FileNotFoundError as error:
        raise _NotWhole(f"it has no {Path(error.filename).name}") from error
    except ValueError as error:
        raise _NotWhole(f"{SUMS} or {CARD} cannot be read") from error


def _keep(made: Export, folder: Path) -> Export:
    """Write an export in place of an earlier one, unless another process has written it meanwhile."""
    content = {
        MODEL: made.model,
        TOKENIZER: made.tokenizer.encode(),
        CARD: made.card.dump().encode(),
    }
    sums = "".join(
        f"{hashlib.sha256(part).hexdigest()}  {name}\n" for name, part in content.items()
    )
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, part in {**content, SUMS: sums.encode()}.items():
            _write(draft / "new" / name, part)
        # on a file system whose locks hold on one machine alone, another may have made it meanwhile
        try:
            if (theirs := _read(folder)) is not None:
                return theirs
        except _NotWhole:
            with suppress(FileNotFoundError):
                folder.rename(draft / "old")
        try:
            (draft / "new").rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


def _write(path: Path, content: bytes) -> None:
    """Write a file and flush it to disk, so that a power failure cannot leave a renamed folder with empty files."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _delete_left(cache: Path, name: str) -> None:
    """Delete partly written files of killed processes."""
    for path in cache.glob(f".{name}.*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime <= _LEFT:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _libraries() -> Mapping[str, str]:
    """Return the versions of the libraries that decide whether a model can be exported."""
    return {name: version(name) for name in (*_MAKERS, *_OTHERS)}


def _remember(failure: Path, reason: str) -> None:
    text = json.dumps({"reason": reason, "libraries": _libraries()}, ensure_ascii=False, indent=1)
    replace_file(failure, text.encode())


def _raise_known(failure: Path) -> None:
    """Raise a remembered failure, if the libraries are unchanged."""
    try:
        record = json.loads(failure.read_text(encoding="utf-8"))
        reason, libraries = str(record["reason"]), record["libraries"]
    # missing or damaged: try again
    except (OSError, ValueError, KeyError, TypeError):
        return
    if libraries == _libraries():
        raise NotExported(f"{reason} (as found before; to try again, delete {failure})", known=True)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
