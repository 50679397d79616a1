"""Cues of words, from their letters alone: the closed word classes that phrases are built from."""

from __future__ import annotations

import re
from enum import IntFlag

from posology.text._lexicon import words
from posology.text.quoting.edges import DOUBTS, NEGATIONS
from strategies.compression.wording.drugs import is_drug


class Cue(IntFlag):
    """Classes of words; a word may have several."""

    #: a function word, before which a phrase may begin
    FUNCTION = 1
    #: a number, in digits or words, with what is written together with it: ``50%``, ``p<0.05``
    NUMBER = 2
    NEGATION = 4
    #: negates the clause after "that" or "whether", as a negation does
    DOUBT = 8
    #: belongs to the number after it: "below", "exceeding", "least"
    COMPARES = 16
    #: names the number after it: "p", "n", "CI", "ratio"
    LABEL = 32
    #: may follow a number's unit: "daily", "per"
    RATE = 64
    #: joins two numbers: "to", "of", "and"
    JOINS = 128
    #: no letter and no digit: ``<``, ``=``, ``±``
    SYMBOL = 256
    #: a dash set off by spaces
    DASH = 512
    #: ends a clause by its punctuation
    ENDS = 1024
    #: ends with a comma
    COMMA = 2048
    #: begins with a bracket
    OPENS = 4096
    #: a conjunction that begins a clause
    TURNS = 8192
    #: a pronoun that begins a clause, unless a preposition stands before it
    RELATIVE = 8388608
    #: begins a clause that a preceding negation can govern
    OPENER = 16384
    #: belongs to a negation after it: "did"
    AUXILIARY = 32768
    #: a length of time: "day"
    TIME = 65536
    #: of a comparison: "than", and "least" after "at"
    BACK = 131072
    #: "of", after "no evidence"
    OF = 262144
    #: noun of "no … of": "evidence"
    EVIDENCE = 524288
    #: "only": "not only" is no negation
    ONLY = 1048576
    #: stays with the words before it: "respectively"
    CLINGS = 2097152
    #: "a" and "an"
    ARTICLE = 4194304
    #: the second word of a unit: "mm Hg", "per cent"
    UNIT_END = 16777216
    #: "to", also after a unit: "5 mg to 10 mg"
    RANGE = 33554432
    #: reverses or limits its clause without being a negation: "contraindicated", "except"
    REVERSES = 67108864
    #: names a drug, alone or in a compound: "aspirin-treated"
    DRUG = 134217728


_TIMES = words(
    "day days week weeks month months year years hour hours minute minutes min night nights d h hr "
    "hrs wk wks mo yr second seconds s visit visits cycle cycles session sessions meal meals"
)
_MEASURES = _TIMES | words(
    "fold percent mg ml kg mcg µg μg ug ng pg g l dl mmol mol nmol µmol μmol meq iu u mm cm m nm hz khz "
    "kcal kj gy cgy mhz mmhg cmh2o db kda bp kb mv ma ms times point points item items item old arm level"
)
_NUMBERS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety "
    "hundred hundreds thousand thousands million millions billion dozen half halves third thirds "
    "quarter quarters twice thrice once double doubled triple tripled several-fold"
)
#: Number words that begin names before a hyphen: double-blind, third-generation, half-life.
_NO_CARDINALS = words("double triple third quarter half once")
_NO_FOLDS = words("fold unfold scaffold manifold blindfold")
_CLASSES: tuple[tuple[Cue, frozenset[str]], ...] = (
    (
        Cue.FUNCTION,
        words(
            # determiners, prepositions, pronouns, auxiliaries, conjunctions, question words
            "a an the this that these those each every any some all both either neither such "
            "of in on at by for from with without within into onto to toward towards through "
            "throughout during before after over under above below between among against about "
            "across along around via per upon versus vs despite except since until than as like "
            "it its he she they them their his her we us our i you your who whom whose which what "
            "there is are was were be been being am do does did has have had having can could may "
            "might must shall should will would and or but nor so yet if whether because although "
            "though while whereas when where how why not no never cannot then thus hence also"
        ),
    ),
    (Cue.NEGATION, NEGATIONS),
    (Cue.DOUBT, DOUBTS),
    (
        Cue.COMPARES,
        words(
            "than least most below above under over exceeding exceeded minus plus within about "
            "approximately approx nearly almost around roughly circa ca c only between up down "
            "beyond until every each first last another additional reached equals equal"
        ),
    ),
    (
        Cue.LABEL,
        words(
            "p n k r r2 f t z d or rr hr ar ci cis confidence credible sd se sem iqr range mean median ratio odds hazard "
            "risk value values interval intervals difference smd md wmd nnt nnh auc kappa alpha "
            "beta q i2 i chi2 chi-square score scores age aged total mode grade stage phase type "
            "day days week weeks month months year years dose doses df no"
        )
        - {"i", "no", "or"},
    ),
    (
        Cue.RATE,
        words(
            "daily weekly monthly yearly nightly hourly annually once twice thrice times per every "
            "each bid tid qid qd qod prn b.i.d t.i.d q.i.d q.d o.d bd tds od divided orally iv "
            "intravenously"
        ),
    ),
    (Cue.JOINS, words("to and or of versus vs per in by x through vs. from out")),
    (Cue.TURNS, words("but whereas although though while because since unless however")),
    (Cue.RELATIVE, words("which who whose when")),
    (Cue.OPENER, words("that whether if")),
    (
        Cue.AUXILIARY,
        words(
            "is are was were be been being do does did has have had can could may might must shall "
            "should will would"
        ),
    ),
    (Cue.TIME, _TIMES),
    (Cue.BACK, words("than least most")),
    (Cue.OF, words("of")),
    (
        Cue.EVIDENCE,
        words("neither none evidence sign signs indication indications suggestion proof"),
    ),
    (Cue.ONLY, words("only")),
    (Cue.CLINGS, words("respectively")),
    (Cue.ARTICLE, words("a an")),
    (Cue.UNIT_END, words("hg h2o cent")),
    (Cue.RANGE, words("to")),
    (
        Cue.REVERSES,
        words(
            "contraindicated contraindication contraindications contraindicates avoid avoids avoided "
            "avoiding discouraged withhold withheld withholding withdraw withdrawn withdrew stop stopped "
            "stopping discontinue discontinued except excepting excluding excluded exclude excludes unless "
            "ineffective ineffectively inefficacious unsuccessful unsuccessfully useless futile "
            "non-significant nonsignificant insignificant insufficiently inadequate underpowered contrary lost "
            "few little rarely seldom scarcely barely less fewer halved untreated rejected refutes disproves"
        ),
    ),
)

# plain integers from here on: joining enum flags takes a microsecond
_TABLE: dict[str, int] = {}
for _cue, _members in _CLASSES:
    for _member in _members:
        _TABLE[_member] = _TABLE.get(_member, 0) | int(_cue)
_DENYING = int(Cue.NEGATION | Cue.FUNCTION)
_OF_ACRONYMS = int(Cue.LABEL | Cue.RATE | Cue.NEGATION)
_FUNCTION, _NUMBER, _NEGATION = int(Cue.FUNCTION), int(Cue.NUMBER), int(Cue.NEGATION)
_SYMBOL, _DASH, _LABEL = int(Cue.SYMBOL), int(Cue.DASH), int(Cue.LABEL)
_DRUG = int(Cue.DRUG)
_ENDS, _COMMA, _OPENS = int(Cue.ENDS), int(Cue.COMMA), int(Cue.OPENS)

_OUTER = "()[]{}\"'“”‘’«».,;:!?*…"
_CLOSING = "\"'”’»*.!?…"
_DASHES = frozenset({"-", "–", "—", "--", "−", "‐", "―"})
_DIGITS = re.compile(r"\W*\d(?:[\d.,·:/%^×*+±~–−-]*\d)?[%°‰]?")
_COMPARED = re.compile(r"[<>=≤≥±~≈≦≧⩽⩾≪≫∼∓][-−–+.·]*\d")
_LETTERS = re.compile(r"[^\W\d_]+")
#: Maximum letters of an unlisted unit; a longer one is a name: 17beta-estradiol.
_UNIT = 3


def cue(word: str) -> int:
    """Return the cues of a word, as a sum of :class:`Cue`.

    Args:
        word: a run of characters without white space, with its punctuation.
    """
    core = word.strip(_OUTER)
    edges = _edges(word, core)
    lower = core.lower()
    known = _TABLE.get(lower)
    if known is None:
        if not any(map(str.isalnum, core)):
            return edges | (_DASH if core in _DASHES else _SYMBOL if core else 0)
        known = _DENYING if lower.endswith(("n't", "n’t")) else _DRUG if is_drug(core) else 0
    elif len(core) > 1 and core.isupper() and core != "NOT":
        # an acronym: "OR" is an odds ratio, "IS" and "HER" are no function words
        known = _LABEL if core == "OR" else known & _OF_ACRONYMS
    if known & _NEGATION:
        known |= _FUNCTION
    if _is_number(core, lower):
        known |= _NUMBER
    return edges | known


def _edges(word: str, core: str) -> int:
    """Return the cues of a word's outer punctuation; brackets within it, as in ``beta(2)``, do not count."""
    if word == core:
        return 0
    edges = _OPENS if word[0] in "([{" or word[:2] in ('"(', "“(") else 0
    bare = word.rstrip(_CLOSING)
    inner = bare.rstrip(",;:")
    if inner[-1:] in (")", "]", "}") and (
        edges or word.count("(") + word.count("[") < word.count(")") + word.count("]")
    ):
        return edges | _ENDS
    if bare != inner and inner:
        edges |= _ENDS
        if bare[-1] == ",":
            edges |= _COMMA
    return edges


def _is_number(core: str, lower: str) -> bool:
    if lower.isalpha():
        return lower in _NUMBERS or (lower.endswith("fold") and lower not in _NO_FOLDS)
    if _COMPARED.search(core):
        return True
    if digits := _DIGITS.match(core):
        rest = core[digits.end() :]
        name = _LETTERS.search(rest)
        # a sentence may follow without its space
        if name is None or rest[0] in ")];,.":
            return True
        letters = name[0]
        if letters.lower() in _MEASURES:
            return True
        # 5mg, 3rd; 5-HT and 5-fluorouracil are names
        return rest[0] not in "-–‐" and len(letters) <= _UNIT and not letters.isupper()
    # two-fold, twenty-five, one-third; but double-blind
    first = lower.split("-", 1)[0]
    return first in _NUMBERS and first not in _NO_CARDINALS
