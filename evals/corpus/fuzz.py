"""Feeds damaged files to every reader of literature and checks invariants of any file.

Usage: ``python -m evals.corpus.fuzz [--seconds N] [--kind NAME ...]``; the time is divided among the formats.

It uses atheris (libFuzzer, guided by coverage) if installed, else hypothesis, on mutations of small valid files.
Invariants: no exception; every passage is complete and its sentences lie within it; places ascend, one a record; only
the end of a file is a ``BadFile``; reading twice, or from a place on, gives the same; noise in the abstract of one record
changes no other; no file takes longer than 20 seconds or the process more than 2 GB. On a violation the file is kept and named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evals.corpus.seeds import MANY, NOISE, PIECES, SEEDS

if TYPE_CHECKING:
    from posology.corpus.files import Kind
    from posology.corpus.items import Item
    from posology.types import Passage

#: seconds that one file may take
SLOWEST = 20
#: MB
MEMORY = 2_048
_PUBLISHED = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_EXAMPLES = 300
#: bytes up to which a file is tried as noise within a record, too
_LONGEST_NOISE = 48


class Violated(AssertionError):
    """What must hold of any file does not."""


def _must(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that optimisation leaves in
    if not holds:
        raise Violated(what)


def check(kind: Kind, path: Path) -> None:
    """Read a file in every way and check what holds of any.

    Raises:
        Violated: it does not.
    """
    from posology.corpus import files
    from posology.corpus.items import Record
    from posology.errors import BadFile

    items = list(kind.read(path))
    shown = [_shown(item) for item in items]
    _must([_shown(item) for item in kind.read(path)] == shown, "read twice, it is not the same")
    lines = [_line(item) for item in items]
    _must(lines == sorted(lines), "places do not grow")
    _must(min(lines, default=1) >= 1, "places begin before 1")
    _must(not any(isinstance(item, BadFile) for item in items[:-1]), "items after its end")
    records = [item for item in items if isinstance(item, Record)]
    _must(len({record.line for record in records}) == len(records), "two records at one place")
    _must(len({record.row for record in records}) == len(records), "two records of one row")
    for record in records:
        _whole(record.passage)
    _must(kind.count(path) >= len(records), "counts fewer than there are")
    for after in {1, len(items) // 2, records[-1].line if records else 0}:
        tail = [text for text, line in zip(shown, lines, strict=True) if line > after]
        found = [_shown(item) for item in kind.read(path, after=after)]
        _must(found == tail, f"from place {after} on, it is not the same")
    # and by its name and root element, which may now say another format
    for _ in files.read(path):
        pass
    files.count_rows(path)


def _line(item: Item) -> int:
    from posology.errors import BadFile

    return 1 << 60 if isinstance(item, BadFile) else item.line


def _shown(item: Item) -> str:
    # errors are equal only to themselves
    return f"{type(item).__name__} {item}"


def _whole(passage: Passage) -> None:
    from posology.text.sentences import split

    words = (
        passage.text, passage.title, passage.id, passage.journal or "", *passage.mesh, *passage.authors,
    )  # fmt: skip
    _must(bool(passage.text.strip()), "an empty passage")
    _must(not any("\0" in text for text in words), "a NUL in a passage")
    for text in words:
        text.encode()
    _must(bool(passage.id) and passage.id == passage.id.strip(), "an id with white space around it")
    _must(passage.year is None or 0 <= passage.year <= 9999, "a year that is none")
    date = passage.published
    _must(
        date is None or bool(_PUBLISHED.fullmatch(date)) or not date.isascii(),
        "a date that is none",
    )
    end = 0
    for sentence in split(passage.text):
        _must(end <= sentence.start < sentence.end <= len(passage.text), "sentences out of order")
        end = sentence.end


def many(name: str, texts: Sequence[bytes]) -> bytes:
    """Return a file of a format with these abstracts, one a record."""
    before, record, after = MANY[name]
    parts = [
        record.replace(b"NN", b"%d" % (11 + place)).replace(b"TEXT", text)
        for place, text in enumerate(texts)
    ]
    return b"".join((before, *parts, after))


def check_neighbours(kind: Kind, path: Path, victim: int, noise: bytes) -> None:
    """Write noise into the abstract of one record of five, and check that the four others are read as before.

    Raises:
        Violated: they are not.
    """
    from posology.corpus.items import Record

    texts = [b"Salt helped 3%d of 100. Water did not." % place for place in range(5)]

    def read() -> list[str]:
        path.write_bytes(many(kind.name, texts))
        # noise may write a record of its own, with an id of another one
        return [str(item.passage) for item in kind.read(path) if isinstance(item, Record)]

    whole = read()
    _must(len(whole) == len(texts), f"{len(whole)} records of {len(texts)} without any noise")
    texts[victim] = texts[victim].replace(b"of 100", b"of %b 100" % noise)
    damaged = read()
    others = [shown for place, shown in enumerate(whole) if place != victim]
    lost = [shown for shown in others if shown not in damaged]
    _must(not lost, f"{noise!r} in record {victim + 1} of 5 changed {len(lost)} others: {lost[:1]}")


def _one(kind: Kind, folder: Path) -> Callable[[bytes], None]:
    path = folder / f"any{kind.suffixes[0]}"

    def one(content: bytes) -> None:
        path.write_bytes(content)
        started = time.perf_counter()
        check(kind, path)
        if kind.name in MANY and len(content) <= _LONGEST_NOISE:
            check_neighbours(kind, path, len(content) % 5, content)
        _must(time.perf_counter() - started < SLOWEST, "took too long")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _must(peak < MEMORY * 1024, f"the process grew to {peak // 1024} MB")

    return one


def _seeds(name: str) -> tuple[bytes, ...]:
    return SEEDS.get(name, ()) + (
        (many(name, [b"Salt helped.", b"So did sand."]),) if name in MANY else ()
    )


def _pieces(name: str) -> tuple[bytes, ...]:
    own = {"pubmed": "xml", "jats": "xml", "endnote": "xml", "jsonl": "json"}.get(name)
    return PIECES["bytes"] + (PIECES[own] if own else ())


def with_atheris(name: str, seconds: int, folder: Path) -> None:
    """Fuzz one format in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["posology.corpus"]):
        from posology.corpus.files import KINDS

    kind = next(kind for kind in KINDS if kind.name == name)
    begun = folder / "seeds"
    begun.mkdir()
    noise = NOISE if name in MANY else ()
    for number, content in enumerate((*_seeds(name), *noise)):
        (begun / f"{number}").write_bytes(content)
    words = ["".join(f"\\x{byte:02x}" for byte in piece) for piece in _pieces(name)]
    (folder / "words").write_text("".join(f'"{word}"\n' for word in words))
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOWEST}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={folder}/found-",
        f"-dict={folder / 'words'}",
        "-print_final_stats=1",
        "-verbosity=0",
        "-max_len=65536",
    ]
    atheris.Setup([sys.argv[0], *options, str(begun)], _one(kind, folder))
    atheris.Fuzz()


def with_hypothesis(name: str, seconds: int, folder: Path) -> None:
    """Fuzz one format until the time is over."""
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    from posology.corpus.files import KINDS

    kind = next(kind for kind in KINDS if kind.name == name)
    one = _one(kind, folder)
    edits = st.tuples(
        st.integers(min_value=0, max_value=10_000),
        st.sampled_from([0, 0, 1, 2, 9, 60, 700]),
        st.one_of(st.sampled_from(_pieces(name)), st.binary(max_size=4)),
    )
    begun = st.sampled_from(_seeds(name))
    noises = st.lists(
        st.one_of(st.sampled_from(NOISE), st.binary(max_size=3)), min_size=1, max_size=4
    )
    ends, ran, executed = time.monotonic() + seconds, 0, 0

    while time.monotonic() < ends:
        ran += 1

        @seed(ran)
        @settings(
            max_examples=_EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(begun, st.lists(edits, min_size=1, max_size=6))
        def once(content: bytes, changes: list[tuple[int, int, bytes]]) -> None:
            nonlocal executed
            executed += 1
            for place, length, piece in changes:
                start = place % (len(content) + 1)
                content = content[:start] + piece + content[start + length :]
            one(content)

        @seed(ran)
        @settings(
            max_examples=_EXAMPLES // 5,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(min_value=0, max_value=4), noises)
        def beside(victim: int, noise: list[bytes]) -> None:
            nonlocal executed
            executed += 1
            check_neighbours(kind, folder / f"any{kind.suffixes[0]}", victim, b"".join(noise))

        once()
        if name in MANY:
            beside()
    print(f"stat::number_of_executed_units: {executed}", file=sys.stderr)


def fuzz(name: str, engine: str, seconds: int, kept: Path) -> bool:
    """Fuzz one format in a process of its own, and print what came of it.

    Returns:
        Whether nothing was violated.
    """
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        command = [sys.executable, "-m", "evals.corpus.fuzz", "--engine", engine]
        command += ["--inside", made, "--kind", name, "--seconds", str(seconds)]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace"
        )
        executed = _EXECUTED.search(done.stderr)
        files = int(executed[1]) if executed else 0
        print(f"{name:<14} {engine:<11} {seconds:>5} s {files:>9,} files", end="  ", flush=True)
        if done.returncode == 0:
            print("nothing was violated")
            return True
        kept.mkdir(parents=True, exist_ok=True)
        log = kept / f"{name.replace(' ', '-')}.log"
        log.write_text(done.stdout + done.stderr)
        for found in [*folder.glob("found-*"), *folder.glob("any*")][:1]:
            (kept / f"{log.stem}-{found.name}").write_bytes(found.read_bytes())
        told = [
            line
            for line in (done.stdout + done.stderr).splitlines()
            if "Violated" in line or "Error" in line
        ]
        print(f"FAILED, see {log}: {told[0] if told else f'status {done.returncode}'}")
        return False


def main(argv: list[str] | None = None) -> int:
    """Fuzz the formats, one after the other."""
    installed = importlib.util.find_spec("atheris") is not None
    parser = argparse.ArgumentParser(prog="evals.corpus.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="in all")
    parser.add_argument("--kind", action="append", help="a format; default: all")
    parser.add_argument(
        "--engine",
        choices=("atheris", "hypothesis"),
        default="atheris" if installed else "hypothesis",
    )
    parser.add_argument(
        "--kept", type=Path, default=Path("fuzzed"), help="where what fails is kept"
    )
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.inside is not None:
        run = with_atheris if given.engine == "atheris" else with_hypothesis
        run(given.kind[0], given.seconds, given.inside)
        return 0
    from posology.corpus.files import KINDS

    known = [kind.name for kind in KINDS]
    if unknown := set(given.kind or ()) - set(known):
        parser.error(f"no such format: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    names = given.kind or known
    share = max(1, given.seconds // len(names))
    good = [fuzz(name, given.engine, share, given.kept) for name in names]
    return 0 if all(good) else 1


if __name__ == "__main__":
    raise SystemExit(main())
