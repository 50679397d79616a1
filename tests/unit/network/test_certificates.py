"""Certificates that the environment names: the variable and the file are named if there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from posology.errors import ConfigurationError
from posology.network.certificates import authorities, check_other
from tests.support.certificates import PEM, tls_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files and folders by what is wrong with them."""
    tls_for("localhost", tmp_path)
    (tmp_path / "empty.pem").touch()
    (tmp_path / "text.pem").write_text("no certificate", encoding="utf-8")
    (tmp_path / "cut.pem").write_bytes((tmp_path / PEM).read_bytes()[:-60])
    (tmp_path / "der.crt").write_bytes(bytes(range(256)))
    (tmp_path / "none").mkdir()
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "1a2b3c4d.0").write_bytes((tmp_path / PEM).read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.pem", "no such file"),
        ("empty.pem", "no certificates in PEM form"),
        ("text.pem", "no certificates in PEM form"),
        ("cut.pem", "no certificates in PEM form"),
        ("der.crt", "no certificates in PEM form"),
        ("none", "Is a directory"),
    ],
)
def test_a_file_without_certificates_is_named(
    name: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / name))
    with pytest.raises(ConfigurationError) as caught:
        authorities()
    assert str(caught.value).startswith(f"SSL_CERT_FILE: {folder / name}: {words}: correct it")
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{0}/missing", "no such folder"),
        ("{0}/none", "no certificates under their hashes"),
        ("{0}/missing:{0}/none", "no certificates under their hashes"),
        ("{0}/empty.pem", "Not a directory"),
        ("{0}/some", None),
        ("{0}/missing:{0}/some", None),
    ],
)
def test_a_folder_without_certificates_is_named(
    given: str, words: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = given.format(folder)
    monkeypatch.setenv("SSL_CERT_DIR", place)
    if words is None:
        assert authorities() is not None
        return
    with pytest.raises(ConfigurationError) as caught:
        authorities()
    assert str(caught.value).startswith(f"SSL_CERT_DIR: {place}: {words}")


def test_the_folder_does_not_count_beside_a_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / PEM))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder / "missing"))
    assert authorities().cert_store_stats()["x509"] == 1
    # they are read once
    assert authorities() is authorities()


def test_a_log_of_keys_that_cannot_be_written_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / PEM))
    monkeypatch.setenv("SSLKEYLOGFILE", str(folder / "missing" / "keys"))
    with pytest.raises(ConfigurationError, match=r"^SSLKEYLOGFILE: .*No such file or directory"):
        authorities()


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"])
def test_what_only_libraries_read_is_checked_as_well(
    variable: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_other(variable)
    for good in (PEM, "some"):
        monkeypatch.setenv(variable, str(folder / good))
        check_other(variable)
    for bad in ("missing.pem", "text.pem", "none"):
        monkeypatch.setenv(variable, str(folder / bad))
        with pytest.raises(ConfigurationError, match=f"^{variable}: "):
            check_other(variable)
