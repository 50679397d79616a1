"""Standard streams: every encoding takes every answer, and an answer that cannot be written is not lost."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pytest

from orchestrator.api.examples import ANSWER, JOB, QUEUED
from orchestrator.cli.ask.outcome import write_explained
from orchestrator.cli.output.streams import fit_json, prepare_streams
from orchestrator.cli.output.write import write_answer
from orchestrator.rendering.kinds import Format
from posology.published.answers import AskOutput
from tests.support.stub_stack import stub_stack

QUOTE = "Falls were rarer (≥ 65 years, 3 µg, α = 0.05 😀)."
SOURCE: dict[str, Any] = {
    "id": "pmid:1", "pmid": "1", "title": "Falls µ ≥ 😀", "journal": None, "year": 2015,
    "publication_types": [], "retracted": False, "source": None,
}  # fmt: skip
OUT = AskOutput.model_validate(
    {
        **ANSWER,
        "status": "answered",
        "form": "free",
        "model": "openai:gpt-4o-mini",
        "answer": f"{QUOTE} [pmid:1]",
        "refusal": None,
        "evidence": [{
            "passage": SOURCE, "start": 0, "end": len(QUOTE), "quote": QUOTE, "context_start": 0, "context": QUOTE,
        }],
    }
)  # fmt: skip
ENCODINGS = ["ascii", "cp1252", "latin-1", "cp437", "cp037", "gb18030", "utf-16", "utf-8"]
POSOLOGY = Path(sys.executable).with_name("posology")
UNICODE = ("utf-16", "utf-8")


class Streams:
    """The standard streams of one encoding, prepared as for a command."""

    def __init__(self, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.encoding = encoding
        self._out, self._err = io.BytesIO(), io.BytesIO()
        given = io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="ascii")
        monkeypatch.setattr(sys, "stdin", given)
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(self._out, encoding=encoding))
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(self._err, encoding=encoding))
        prepare_streams()

    def written(self) -> bytes:
        sys.stdout.flush()
        return self._out.getvalue()

    def said(self) -> str:
        sys.stderr.flush()
        return self._err.getvalue().decode(self.encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", list(Format))
def test_every_encoding_takes_an_answer_in_every_format(
    encoding: str, form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams(encoding, monkeypatch)
    write_answer(OUT, form)
    written = streams.written()
    match form:
        case Format.JSON | Format.CSL:
            used = encoding if encoding in (*UNICODE, "cp037") else "ascii"
            text = json.dumps(json.loads(written.decode(used)), ensure_ascii=False)
            assert "µ ≥ 😀" in text
        case Format.RIS | Format.BIBTEX | Format.CSV:
            # another program knows no escapes of ours
            used = encoding if encoding in (*UNICODE, "gb18030") else "utf-8"
            text = written.decode(used)
            assert "µ ≥ 😀" in text
            assert ("written in UTF-8" in streams.said()) is (used != encoding)
        case _:
            text = written.decode(encoding)
            assert "65 years" in text
            assert ("≥ 65" in text) or ("\\u2265 65" in text)
    if form is Format.CSV:
        assert next(csv.DictReader(io.StringIO(text)))["quote"] == QUOTE


def test_json_is_escaped_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    Streams("ascii", monkeypatch)
    assert fit_json('{"a": "µ😀\\n"}') == '{"a": "\\u00b5\\ud83d\\ude00\\n"}'
    # bytes of another encoding end no command
    assert sys.stdin.read() == "\N{REPLACEMENT CHARACTER}"


def test_half_a_pair_of_surrogates_is_written_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = Streams("utf-8", monkeypatch)
    write_answer(OUT.model_copy(update={"question": "\ud800?"}), Format.MARKDOWN)
    assert b"65 years" in streams.written()


class Full(io.RawIOBase):
    """A device that takes nothing."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize("form", [Format.TEXT, Format.JSON, Format.CSV])
@pytest.mark.parametrize("job", [None, "job_1"])
def test_an_answer_that_cannot_be_written_goes_to_standard_error(
    form: Format, job: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = Streams("utf-8", monkeypatch)
    full = io.TextIOWrapper(io.BufferedWriter(Full()), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(SystemExit) as end:
        write_explained(OUT, form, why=False, job=job)
    with suppress(OSError):
        full.close()
    said = streams.said()
    assert end.value.code == 74
    assert said.startswith("posology: cannot write to standard output: No space left on device.")
    assert ("`posology jobs show job_1` prints the answer again." in said) is (job is not None)
    assert QUOTE in said


def ask(folder: Path, *, stdout: IO[bytes] | int, more: str = "") -> tuple[int, str]:
    """Ask a stack that is a stub; return the exit status and what was said on standard error."""
    job = {**QUEUED, "state": "succeeded", "result": OUT.model_dump(mode="json")}
    with stub_stack(folder / ".posology", "papers") as stack:
        stack.replies |= {
            "GET /healthz": (200, {}),
            "GET /readyz": (200, {}),
            "POST /v1/jobs": (200, job),
        }
        command = f'exec "{POSOLOGY}" ask "Why?" --index papers {more}'
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=folder,
        )
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_and_a_closed_output_show_the_answer_and_where_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Path("/dev/full").open("wb") as full:
        ends = [ask(tmp_path, stdout=full), ask(tmp_path, stdout=subprocess.DEVNULL, more=">&-")]
    for status, said in ends:
        assert status == 74
        assert f"posology jobs show {JOB}" in said
        assert QUOTE in said
        assert said.count("cannot write") == 1


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_has_left_is_no_error(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ask(tmp_path, stdout=writing, more=f"--format {form}") == (0, "")
    finally:
        os.close(writing)
