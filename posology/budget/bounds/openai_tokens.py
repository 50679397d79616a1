"""OpenAI's own tokenizers, if their files are available; nothing is downloaded.

``tiktoken`` (the extra ``tokenizers-openai``) downloads an encoding when it is first used and keeps the
file in a cache folder. Its loader is not called here: the file is read if it is there and is the one that
its digest says, and the encoding is made of it. To have it there, run
``python -c "import tiktoken; tiktoken.get_encoding('o200k_base')"`` once, on a machine with a network.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from posology.text.bounds import TextBound

#: maximum characters of a text to count; longer ones would take long
LONGEST = 1_000_000
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_START = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodingFile:
    """The file of an encoding, as ``tiktoken_ext.openai_public`` lists it."""

    address: str
    #: SHA-256 of the file
    digest: str
    #: pattern that splits a text before merging
    pattern: str

    def path(self, folder: Path) -> Path:
        """Return the file's path in the cache of ``tiktoken``."""
        return folder / hashlib.sha1(self.address.encode(), usedforsecurity=False).hexdigest()


_O200K = EncodingFile(
    address=_ADDRESS.format("o200k_base"),
    digest="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    pattern="|".join(
        (
            rf"{_START}{_UPPER}*{_LOWER}+{_SUFFIX}",
            rf"{_START}{_UPPER}+{_LOWER}*{_SUFFIX}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
)
_CL100K = EncodingFile(
    address=_ADDRESS.format("cl100k_base"),
    digest="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    pattern=(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
)
#: encoding → its file
ENCODINGS: Mapping[str, EncodingFile] = MappingProxyType(
    {"cl100k_base": _CL100K, "o200k_base": _O200K, "o200k_harmony": _O200K}
)


def default_folder() -> Path:
    """Return the default cache folder of ``tiktoken``."""
    return Path(tempfile.gettempdir()) / "data-gym-cache"


def encoding_of(name: str) -> str | None:
    """Return the encoding of one of OpenAI's models; ``None``: unknown, or no ``tiktoken``."""
    try:
        from tiktoken.model import encoding_name_for_model

        # of a fine-tuned model, ft:BASE:…, that of its base
        return encoding_name_for_model(name.removeprefix("ft:").partition(":")[0])
    except (ImportError, KeyError):
        return None


def counter(name: str, folder: Path) -> TextBound | None:
    """Return a counter of tokens for one of OpenAI's models.

    Args:
        name: of the model, without the provider.
        folder: where ``tiktoken`` keeps its files.

    Returns:
        ``None``: another model, no ``tiktoken``, no file, or another file.
    """
    file = ENCODINGS.get(encoding_of(name) or "")
    return None if file is None else load(file, folder)


@cache
def load(file: EncodingFile, folder: Path) -> TextBound | None:
    """Read an encoding, in some tenths of a second; ``None``: the file is missing or another."""
    try:
        import tiktoken

        content = file.path(folder).read_bytes()
    except (ImportError, OSError):
        return None
    if hashlib.sha256(content).hexdigest() != file.digest:
        return None
    ranks = {
        base64.b64decode(token): int(rank)
        for token, rank in (line.split() for line in content.splitlines() if line)
    }
    encoding = tiktoken.Encoding(
        file.digest[:8], pat_str=file.pattern, mergeable_ranks=ranks, special_tokens={}
    )

    def count(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return count
