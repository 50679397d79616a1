"""Log lines: their form, what they may not contain, and the files that hold them."""

from __future__ import annotations

import io
import json
import logging
import multiprocessing
import timeit
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.contextvars import bound_contextvars
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.logs import events
from orchestrator.logs.configuration import configure, formatter, secrets_of
from orchestrator.logs.files import Line, Reader, Wanted
from orchestrator.logs.notices import Notices
from orchestrator.logs.rotated import PrivateFile, SharedFile
from orchestrator.settings import Settings
from posology.errors import BudgetExhausted, HeadroomReserved

QUESTION = "Does zyxomab cure lattice fever?"
KEY = "sk-zyx-0123456789abcdef"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logged(stream: io.StringIO | None = None, **settings: str) -> io.StringIO:
    stream = stream or io.StringIO()
    configure(Settings.model_validate(settings), handler=logging.StreamHandler(stream))
    return stream


def test_an_event_is_one_line_with_its_ids() -> None:
    stream = logged()
    with bound_contextvars(request_id="r1"):
        events.note("job submitted", tenant="acme", job="job_1", batch=None)
    (line,) = lines(stream)
    assert list(line)[:3] == ["timestamp", "level", "event"]
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "event": "job submitted",
        "tenant": "acme",
        "job": "job_1",
        "request_id": "r1",
    }


def test_the_server_s_own_access_log_stays_silent() -> None:
    # it writes the whole address, so the question of a query, too
    stream = logged(POSOLOGY_LOG_LEVEL="debug")
    logging.getLogger("uvicorn.access").info('%s - "GET /v1/search?q=%s"', "127.0.0.1", QUESTION)
    logging.getLogger("uvicorn.error").info("Application startup complete.")
    assert [line["event"] for line in lines(stream)] == ["Application startup complete."]


def test_lines_of_libraries_have_the_same_form() -> None:
    stream = logged()
    with bound_contextvars(job="job_1"):
        logging.getLogger("redis").warning("gone at %s", "h")
        logging.getLogger("redis").info("not wanted")
    (line,) = lines(stream)
    assert (line["event"], line["logger"], line["job"]) == ("gone at h", "redis", "job_1")


@pytest.mark.parametrize(
    ("form", "stream", "is_json"),
    [
        ("auto", io.StringIO(), True),
        ("auto", Terminal(), False),
        ("JSON", Terminal(), True),
        ("console", io.StringIO(), False),
    ],
)
def test_the_form_is_the_settings(form: str, stream: io.StringIO, is_json: bool) -> None:
    logged(stream, POSOLOGY_LOG_FORMAT=form)
    events.note("job submitted", job="job_1")
    assert stream.getvalue().startswith("{") == is_json
    assert "job submitted" in stream.getvalue()


def test_the_level_is_the_settings() -> None:
    stream = logged(POSOLOGY_LOG_LEVEL="WARNING")
    events.note("quiet")
    events.note("loud", logging.WARNING)
    assert [line["event"] for line in lines(stream)] == ["loud"]


def test_a_question_is_logged_only_where_that_is_asked_for() -> None:
    assert events.question(QUESTION) == {}
    logged(POSOLOGY_LOG_QUESTIONS="true")
    assert events.question(QUESTION) == {"question": QUESTION}


def test_texts_of_spans_are_in_no_line() -> None:
    stream = logged()
    events.note("job succeeded", logging.INFO, {"gen_ai.input.messages": QUESTION}, job="job_1")
    (line,) = lines(stream)
    assert line["job"] == "job_1"
    assert "zyxomab" not in stream.getvalue()


def test_a_traceback_has_places_and_no_message() -> None:
    stream = logged()
    try:
        raise ValueError(QUESTION)
    except ValueError:
        logging.getLogger("workers.x").exception("internal error")
    (line,) = lines(stream)
    assert line["error"] == "ValueError"
    assert "test_logs.py" in line["at"][-1]
    assert "zyxomab" not in stream.getvalue()


PLANTED = {
    "POSOLOGY_REDIS_URL": "redis://:p%40ss-word-zyx@h:6379/0",
    "POSOLOGY_METRICS_KEY": "metrics-key-zyx-123",
    "POSOLOGY_CONSOLE_KEY": "console-key-zyx-123456789",
    "AWS_SECRET_ACCESS_KEY": 'aws"zyx\\secret',
}
#: not in the settings, and known by its form
TENANT_KEY = f"psl_{'0a' * 8}_{'1b' * 24}"


@pytest.mark.parametrize("form", ["json", "console"])
def test_no_secret_is_in_a_line(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "no-usual-form-zyx")
    stream = logged(None, POSOLOGY_LOG_FORMAT=form, **PLANTED)
    said = [*PLANTED.values(), "p@ss-word-zyx", "no-usual-form-zyx", TENANT_KEY, KEY,
            "Authorization: Bearer abc.zyx", "redis://user:other-zyx@h/0"]  # fmt: skip
    for text in said:
        events.note(f"event {text}", field=text, deep={"list": [text]})
        logging.getLogger("posology.x").error("said %s", text)
    assert stream.getvalue().count("event") >= len(said)
    for piece in ("zyx", TENANT_KEY, "1b1b"):
        assert piece not in stream.getvalue()


@given(secret=st.text(min_size=6, max_size=30).filter(lambda text: text.strip() == text))
def test_no_secret_survives_its_escapes(secret: str) -> None:
    record = logging.LogRecord("posology", logging.INFO, "", 0, "with %s", (f"<{secret}>",), None)
    line = formatter([secret]).format(record)
    assert secret not in json.loads(line)["event"]


def test_every_secret_of_the_settings_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "anthropic-zyx")
    found = secrets_of(Settings.model_validate(PLANTED))
    assert {"anthropic-zyx", "p@ss-word-zyx", "metrics-key-zyx-123"} <= found


def test_a_refusal_has_its_numbers_and_a_wait_is_none() -> None:
    stream = logged()
    refused = BudgetExhausted(
        "no",
        scope="day",
        cap=Decimal("1.50"),
        spent=Decimal(1),
        reserved=Decimal(0),
        asked=Decimal("0.7"),
        resets=None,
    )
    with pytest.raises(BudgetExhausted), events.refusals(tenant="acme"):
        raise refused
    waits = HeadroomReserved("later", scope="day", asked=None, place=0)
    with pytest.raises(HeadroomReserved), events.refusals(tenant="acme"):
        raise waits
    (line,) = lines(stream)
    assert (line["error"], line["scope"], line["cap"], line["asked"]) == (
        "BudgetExhausted",
        "day",
        "1.50",
        "0.7",
    )


def test_an_event_costs_little_where_nobody_wants_it() -> None:
    logging.getLogger("posology").setLevel(logging.ERROR)
    count = 20_000
    each = min(
        timeit.repeat(
            lambda: events.note("attempt settled", job="j", tenant="t", tokens_in=3),
            number=count,
            repeat=5,
        )
    )
    assert each / count < 5e-6


def write(path: Path, *found: dict[str, Any] | str) -> None:
    with path.open("a", encoding="utf-8") as file:
        for one in found:
            file.write(f"{one if isinstance(one, str) else json.dumps(one)}\n")


def at(second: int, event: str, **more: Any) -> dict[str, Any]:
    stamp = f"2026-01-15T10:00:{second:02}.000Z"
    return {"timestamp": stamp, "level": "info", "event": event, **more}


def test_files_are_read_in_the_order_of_time(tmp_path: Path) -> None:
    write(tmp_path / "worker1.log.2", at(1, "a"))
    write(tmp_path / "worker1.log.1", at(3, "c"))
    write(tmp_path / "worker1.log", at(5, "e"), "raw after e", at(7, "g"))
    write(tmp_path / "api.log", at(2, "b"), at(4, "d"), at(6, "f"))
    with Reader(tmp_path) as reader:
        found = [line.fields.get("event", line.text) for line in reader.read()]
    assert found == ["a", "b", "c", "d", "e", "raw after e", "f", "g"]


def test_lines_of_redis_stand_at_their_time() -> None:
    now = datetime.now(UTC)
    text = f"22295:M {now.astimezone():%d %b %Y %H:%M:%S}.566 * Ready to accept connections"
    line = Line.of("redis", text)
    assert line.at == f"{now:%Y-%m-%dT%H:%M:%S}.566Z"
    assert line.plain.startswith(f"{now:%H:%M:%S}.566 ")
    assert Line.of("redis", "1:M 99 Xxx 2026 10:00:00.000 * x", at="before").at == "before"


def test_new_lines_are_followed_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "worker1.log"
    write(path, at(1, "a"))
    with Reader(tmp_path) as reader:
        assert len(list(reader.read())) == 1
        assert list(reader.read()) == []
        with path.open("a", encoding="utf-8") as file:
            file.write('{"event": "half')
        assert list(reader.read()) == []
        write(path, ' a line"}')
        assert [line.fields["event"] for line in reader.read()] == ["half a line"]
        write(path, at(2, "last of the old"))
        path.replace(tmp_path / "worker1.log.1")
        write(path, at(3, "first of the new"))
        # a process that started meanwhile
        write(tmp_path / "api.log", at(4, "other"))
        found = [line.fields["event"] for line in reader.read()]
    assert found == ["last of the old", "first of the new", "other"]


def test_filters_are_all_met() -> None:
    line = Line.of("worker1", json.dumps(at(1, "x", job="j", tenant="t") | {"level": "warning"}))
    assert Wanted()(line)
    assert Wanted(level=logging.WARNING, fields={"job": "j", "tenant": "t"})(line)
    assert not Wanted(level=logging.ERROR)(line)
    assert not Wanted(fields={"job": "other"})(line)
    assert not Wanted(fields={"batch": "b"})(line)
    assert not Wanted(fields={"job": "j"})(Line.of("redis", "raw text"))


def test_important_lines_are_shown_and_repeats_counted() -> None:
    now, told = [0.0], list[str]()
    notices = Notices(told.append, pause=60, clock=lambda: now[0])
    refusal = json.dumps(at(1, "refused by a limit", tenant="t") | {"level": "warning"})
    for _ in range(10):
        notices("worker1", refusal)
    notices("worker1", refusal.replace('"t"', '"u"'))
    notices("worker1", json.dumps(at(1, "job submitted")))
    notices("redis", "raw text")
    assert len(told) == 2
    now[0] = 61
    notices("worker1", refusal)
    assert told[2].endswith("(9 more since then)")
    assert "tenant=t" in told[0]


def test_a_log_stays_within_its_size_and_private(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    file = PrivateFile(tmp_path / "log" / "x.log", maxBytes=1_000, backupCount=2)
    for number in range(500):
        file.write(f"line {number} \udcff")
    file.close()
    found = sorted((tmp_path / "log").iterdir())
    assert [path.name for path in found] == ["x.log", "x.log.1", "x.log.2"]
    assert all(path.stat().st_size <= 1_000 for path in found)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in found)
    assert "line 499" in found[0].read_text(encoding="utf-8")


def _write_many(path: Path, process: int) -> None:
    file = SharedFile(path, maxBytes=2_000, backupCount=50, delay=True)
    for number in range(100):
        file.write(f"{process} {number} {'x' * 50}")


def test_processes_rotate_one_log_without_losing_a_line(tmp_path: Path) -> None:
    path = tmp_path / "commands.log"
    fork = multiprocessing.get_context("spawn")
    writers = [fork.Process(target=_write_many, args=(path, process)) for process in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    found = [
        line for file in tmp_path.glob("commands.log*") for line in file.read_text().splitlines()
    ]
    assert sorted(line.split()[:2] for line in found) == sorted(
        [str(process), str(number)] for process in range(4) for number in range(100)
    )
    assert all(file.stat().st_size <= 2_000 for file in tmp_path.iterdir())


def test_a_log_that_cannot_be_written_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SharedFile.of(tmp_path / "none" / "commands.log").write("lost")
    (tmp_path / "commands.log").mkdir()
    SharedFile.of(tmp_path / "commands.log").write("lost")
    assert capsys.readouterr() == ("", "")


def test_a_command_that_finds_no_lines_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    given = ["logs", "--home", str(tmp_path)]
    for more, said in (([], "no log lines in"), (["--job", "nope"], "no log lines match in")):
        none = CliRunner().invoke(app, [*given, *more])
        assert (none.exit_code, none.stdout) == (0, "")
        assert said in none.stderr
        assert str(folder) in none.stderr
