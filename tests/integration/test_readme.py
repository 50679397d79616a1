"""The commands of the README, in their order, as a reader runs them."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.stack.redis_server import find_server
from posology.errors import ConfigurationError
from posology.testing import Reply, StubProvider
from posology.testing.provider.echo import echo

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)
#: a file of PubMed's with one record, for the folder that the README's sync names
RECORD = """<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID Version="1">1</PMID><Article>
<Journal><JournalIssue><PubDate><Year>2020</Year></PubDate></JournalIssue></Journal>
<ArticleTitle>Aspirin.</ArticleTitle><Abstract><AbstractText>Aspirin prevented stroke.</AbstractText></Abstract>
<Language>eng</Language><PublicationTypeList><PublicationType>Randomized Controlled Trial</PublicationType>
</PublicationTypeList></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"""


@contextmanager
def stack(words: list[str]) -> Iterator[None]:
    """``posology up``, until the block ends."""
    code = "from orchestrator.cli.app import main; main()"
    command = [sys.executable, "-c", code, *words, "--no-api"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("ready"):
                    break
            else:
                pytest.fail("".join(said))
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=120)


@pytest.fixture
def folder(tmp_path: Path, tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the reader stands: a folder with the sample corpus, a provider and questions."""
    (tmp_path / "posology").symlink_to(ROOT / "posology")
    (tmp_path / "pubmed").mkdir()
    (tmp_path / "pubmed" / "pubmed26n0001.xml").write_text(RECORD)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.txt").write_text("In the first week 25 mg of atenolol were given.")
    row = json.dumps({"id": 1, "question": "Does aspirin help?"})
    (tmp_path / "questions.jsonl").write_text(f"{row}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSOLOGY_EMBEDDER", str(tiny_encoder))
    # keys are stored, but not the developer's
    monkeypatch.delenv("POSOLOGY_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POSOLOGY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    with StubProvider(lambda _: Reply(text=echo)) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        yield tmp_path


def test_the_commands_of_the_readme_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner()
    job = ""
    with ExitStack() as running:
        for line in COMMAND.findall(README):
            words = shlex.split(line.replace("…", "x"))
            if words[0] == "export":
                monkeypatch.setenv(*words[1].split("=", 1))
                continue
            assert words[0] == "posology", line
            words = [job if word == "ID" else word for word in words[1:]]
            if words[0] == "up":
                try:
                    find_server(None)
                except ConfigurationError as error:
                    pytest.skip(str(error))
                running.enter_context(stack(words))
                continue
            result: Result = runner.invoke(app, words, input="sk-test\n", catch_exceptions=False)
            assert result.exit_code == 0, f"{line}\n{result.output}"
            if words[0] == "submit":
                job = result.stdout.split()[0]
                watched = runner.invoke(app, ["jobs", "watch", job])
                assert watched.exit_code == 0, watched.output
    rows = (folder / "answers.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == [1]
    assert job


def test_the_two_commands_of_a_fresh_clone_are_targets_of_make() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"^make (\S+)", README, re.MULTILINE)) == {"demo", "test"}
    assert {"demo", "test"} <= set(targets)
