"""Makes the packaged judge of support.

``python -m training.judge [--teacher DIR | --taught] [--data DIR] [--work DIR] [--without SET ...] [--write]``. An interrupted training goes
on. About an hour on two cores, with a teacher three.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from posology.index.embedders.packaged import words as word_vectors
from posology.reading.crossencoder import MODELS
from posology.reading.judge import FILE, Judge
from training.gold import DATA, WORK
from training.judge.cases import GENERAL, Lesson, lessons
from training.judge.packaging import packaged
from training.judge.teacher import RECIPE, SAID, Teacher, packed, with_said
from training.judge.training import Recipe, aside, make, measures, read, stages, train
from training.judge.unlabelled import unlabelled
from training.kept import Kept
from training.reader.model import batch

#: sets that the judge is calibrated on
CALIBRATING = ("claims", "scifact", "healthver", "questions")


def main() -> None:
    """Train, print what the file reaches on dev, and write the packaged one with ``--write``."""
    parser = argparse.ArgumentParser(
        prog="training.judge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "judge")
    parser.add_argument(
        "--teacher",
        type=Path,
        metavar="DIR",
        help="folder of all-mpnet-base-v2, which is trained first, and then judges what nobody did",
    )
    parser.add_argument("--taught", action="store_true", help="learn what a teacher said before")
    parser.add_argument(
        "--passes", type=int, default=Recipe().passes, help="over the written claims"
    )
    parser.add_argument(
        "--without", nargs="*", default=(), metavar="SET", help="sets that are not learned"
    )
    parser.add_argument("--limit", type=int, help="lessons, for a trial; not with --write")
    parser.add_argument("--bits", type=int, default=7, help="of a weight; 8 saturates old CPUs")
    parser.add_argument("--write", action="store_true", help="replace the packaged file")
    given = parser.parse_args()
    if given.write and (given.limit is not None or given.without):
        parser.error("--limit and --without train a trial only: omit --write")
    if given.taught and not SAID.exists():
        parser.error(f"--taught needs {SAID.name}, which --teacher makes")
    given.work.mkdir(parents=True, exist_ok=True)
    every = list(lessons(given.data))
    learned = [one for one in every if one.part == "train" and one.origin not in given.without]
    sets = aside(every, "dev") | {
        name: [one for one in every if one.origin == name and one.written] for name in given.without
    }
    if given.teacher is not None or given.taught:
        learned = _taught(given, learned, sets)
    if given.limit is not None:
        learned = learned[:: max(1, len(learned) // given.limit)]
    recipe, words = Recipe(passes=given.passes), word_vectors()
    model = make(recipe.seed)
    steps = sum(len(made) for _, made in stages(learned, recipe).values())
    print(f"{len(learned)} lessons, {steps} steps", flush=True)
    train(
        model, learned, lambda some: batch([read(one) for one in some], words), recipe, given.work
    )
    calibrating = [one for name in CALIBRATING if name not in given.without for one in sets[name]]
    file = packaged(model, learned, calibrating, words, given.bits)
    (given.work / FILE).write_bytes(file)
    judge = Judge(file)
    for name, some in sets.items():
        found = judge.probabilities([read(one) for one in some])
        print(json.dumps({"set": name, **measures(some, found)}))
    if given.write:
        (MODELS / FILE).write_bytes(file)


def _taught(
    given: argparse.Namespace, learned: Sequence[Lesson], sets: Mapping[str, Sequence[Lesson]]
) -> list[Lesson]:
    """Return the lessons with what a teacher says of them, and more pairs; a new teacher is trained and measured first."""
    general = [one for one in learned if one.origin in GENERAL]
    asked = [one for one in learned if one.origin not in GENERAL]
    if "claims" not in given.without:
        asked += unlabelled(given.data)
    if given.teacher is None:
        return [*general, *with_said(asked, SAID.read_bytes())]
    work = given.work / "teacher"
    work.mkdir(exist_ok=True)
    teacher = Teacher(given.teacher)
    train(teacher.model, teacher.taught(learned), teacher.inputs, RECIPE, work)
    store = Kept(work / "judged.sqlite")
    for name, some in sets.items():
        found = measures(some, teacher.judge(some, store))
        print(json.dumps({"set": name, "by": "teacher", **found}), flush=True)
    said = packed(asked, teacher.judge(asked, store))
    (SAID if given.write else work / SAID.name).write_bytes(said)
    return [*general, *with_said(asked, said)]


if __name__ == "__main__":
    main()
