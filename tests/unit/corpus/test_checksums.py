from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from posology.corpus.checksums import beside, check, md5
from posology.errors import BadFile

NAME = "pubmed26n0001.xml.gz"
CONTENT = b"not really a file of PubMed"
RIGHT = hashlib.md5(CONTENT).hexdigest()
WRONG = hashlib.md5(b"another").hexdigest()


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / NAME
    path.write_bytes(CONTENT)
    beside(path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_name_beside(tmp_path: Path) -> None:
    assert beside(tmp_path / NAME) == tmp_path / "pubmed26n0001.xml.gz.md5"


def test_a_file_without_a_checksum_is_not_checked(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(CONTENT)
    assert check(path) is None
    assert md5(path) == RIGHT


FORMS = [
    "MD5({name})= {hex}\n",
    "MD5 ({name}) = {hex}",
    "{hex}  {name}\n",
    "{hex} *{name}\r\n",
    "{hex}  /data/baseline/{name}",
    "{hex}\n",
    "\n{hex}  other.xml.gz\n{hex}  {name}\n",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_every_form_is_read(tmp_path: Path, form: str, case: type[str]) -> None:
    path = written(tmp_path, form.format(name=NAME, hex=case(RIGHT)))
    assert check(path) is None


@pytest.mark.parametrize("form", FORMS)
def test_another_checksum_is_reported_with_both(tmp_path: Path, form: str) -> None:
    bad = check(written(tmp_path, form.format(name=NAME, hex=WRONG)))
    assert isinstance(bad, BadFile)
    assert bad.path == str(tmp_path / NAME)
    assert RIGHT in bad.reason
    assert WRONG in bad.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", f"{NAME}.md5 has no MD5"),
        ("<html>404</html>", f"{NAME}.md5 has no MD5"),
        (RIGHT[:-1], f"{NAME}.md5 has no MD5"),
        (b"\xff\xfe\0" * 20, f"{NAME}.md5 has no MD5"),
        (f"MD5(other.xml.gz)= {RIGHT}", f"{NAME}.md5 has no MD5 of this file"),
    ],
)
def test_what_is_no_checksum(tmp_path: Path, text: str | bytes, reason: str) -> None:
    bad = check(written(tmp_path, text))
    assert isinstance(bad, BadFile)
    assert bad.reason == reason


def test_a_checksum_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, RIGHT)
    path.unlink()
    bad = check(path)
    assert isinstance(bad, BadFile)
    assert bad.reason == "No such file or directory"
