"""Names of sources and drugs in an answer that no shown passage has: authors, journals, trials, drugs, and gaps left for them.

A name is one by its form: "Wang et al. (2013)", "the SPRINT trial", NCT01206062, "Annals of Surgery". It is looked for in the
question and in titles, texts, authors, journals, years and identifiers of the passages. Ordinary capitals are no names, nor are
abbreviations whose letters begin words of a passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from posology.text._lexicon import words
from posology.text.names import parts_of
from posology.types import Passage
from strategies.compression.checked import terms
from strategies.support.lexicon import ALIASES, substances

_CAPITAL = r"[^\W\d_a-zß-öø-ÿ]"
#: a word with a capital, of a bounded length: patterns that begin at every one of a long run of them stay linear
_WITH_CAPITAL = r"(?<![\w-])[A-Z][\w'’-]{1,40}+"
#: a family name, which is no word of capitals alone and no month
_FAMILY = (
    r"(?<!\w)(?:(?:van|von|de|der|den|di|da|del|la|le|ten|el|al)\s){0,3}"
    r"(?!(?:January|February|March|April|May|June|July|August|September|October|November|December)\b)"
    rf"(?:Mc|Mac|[OD]['’])?{_CAPITAL}[a-zß-öø-ÿ]{{1,40}}(?:[-'’][^\W\d_]{{1,40}}){{0,3}}"
)
_YEAR = r"(?:19|20)\d\d"
_TWO = rf"(?P<first>{_FAMILY})(?:\s[A-Z]{{1,3}}\b)?(?:,?\s(?:and|&)\s(?P<second>{_FAMILY}))?"
_WORK = r"(?:study|trial|work|paper|article|review|analysis|meta-analysis|research|report|survey|investigation|experiment)"
#: a citation of authors, with the year where it names one
_DATED = rf"(?P<year>{_YEAR})[a-z]?"
_FOUND = r"(?:found|reported|showed|demonstrated|concluded|observed|described)"
_AUTHORS = (
    re.compile(
        rf"{_TWO},?\s(?:et\sal\b\.?|and\s(?:colleagues|co-?workers|associates))(?:,?\s?[(\[]?{_DATED}[)\]]?)?"
    ),
    re.compile(rf"{_TWO},?\s?[(\[]{_DATED}[)\]]"),
    re.compile(rf"(?<=[(\[;]){_TWO},\s{_DATED}"),
    re.compile(rf"(?P<first>{_FAMILY})\s(?:and|&)\s(?P<second>{_FAMILY})(?=\s{_FOUND}\b)"),
    re.compile(rf"(?:(?<=\bDr\s)|(?<=\bDr\.\s)|(?<=\bProfessor\s))(?P<first>{_FAMILY})"),
)
#: a gap that the writer left for a name, with what follows it
_GAP = re.compile(
    r"[\[<{](?:(?:insert|first|last|study|journal|trial|drug|corresponding)\s)?"
    r"(?:authors?|names?|year|date|journal|citation|reference|title)(?:['’]s)?(?:,?\s(?:names?|year|et\sal\b\.?))?[\]>}]"
    rf"(?:\set\sal\b\.?)?(?:,?\s?[(\[](?:{_DATED}|year)[)\]])?",
    re.IGNORECASE,
)
_BY = re.compile(
    rf"\b{_WORK}\s(?:\w+\s)?(?:conducted\s|published\s|performed\s|led\s|reported\s|authored\s|written\s)?by\s"
    rf"(?:Dr\.?\s|Prof\.?\s|Professor\s)?(?P<first>{_FAMILY})"
)
_OF = r"(?:\s(?:of|and|the|for|in|on|&)){0,3}"
_JOURNAL = re.compile(
    rf"(?:{_WITH_CAPITAL}\s){{0,4}}(?:Journal|Annals|Archives|Proceedings)\sof(?:\sthe)?\s{_WITH_CAPITAL}"
    rf"(?:{_OF}\s{_WITH_CAPITAL}){{0,6}}"
    rf"|(?:{_WITH_CAPITAL}\s){{1,4}}Journal\b"
    r"|\b(?:Lancet|JAMA|BMJ|NEJM|PLo?S\s(?:ONE|Medicine)|Cochrane\sDatabase)\b"
    r"|(?<=published\sin\s)(?:Nature|Science|Circulation|Blood|Cell|Gut|Brain|Chest|Stroke|Pediatrics)\b"
)
_NUMBER = re.compile(
    r"\b(?:NCT|ISRCTN|ACTRN|DRKS|ChiCTR|UMIN|CRD|PMID|PMC)[\s:-]?(?P<digits>\d{5,14})\b|\b(?P<doi>10\.\d{4,9}/[^\s\])]+)"
)
_ACRONYM = re.compile(
    r"(?<![\w-])(?P<name>(?=[a-z0-9-]{0,20}[A-Z][a-z0-9-]{0,20}[A-Z])[A-Z][A-Za-z0-9-]{1,30}+(?:\s[A-Z][A-Z0-9-]{1,30}+)?)"
    r"\s(?:trial|study|cohort|registry|investigators)\b"
)
_NAMED = re.compile(
    rf"(?P<name>(?:{_WITH_CAPITAL}{_OF}\s){{1,6}})(?:Study|Trial|Initiative|Survey|Registry|Project)\b"
)
_WORD = re.compile(r"[^\W_]+")
#: capitals of an acronym from which it may name a trial
_CAPITALS = 3
#: acronyms of designs, methods, places and conditions, which name no trial
_GENERIC = words(
    "aids ards bmi cad ckd cohort copd covid crp ct dna ecg eeg elisa emg esrd eu eeg gcp gwas hiv hplc hpv icu itt mri mrna "
    "nhs nih nmr nsaid pcr pet pilot rct rna rt snp ssri tb tia uk us usa uti who fda ema fmri cbt bp gp ra ms iv"
)
_PLAIN = words(
    "the a an this these that in of and for on by to at as from with our its their another one study studies trial trials initiative "
    "survey registry project randomized randomised controlled clinical double-blind double blind placebo phase pilot open "
    "label cohort observational prospective retrospective crossover parallel group multicenter multicentre longitudinal "
    "cross-sectional case control population based i ii iii iv journal medical"
)


#: drugs that bodies and minerals have, too, and kinds of drugs
_NATURAL = words(
    "calcium cortisone dopamine epinephrine estradiol estrogen fluoride folate heparin histamine immunoglobulin "
    "immunosuppressant insulin interferon iodine iron laxative lithium magnesium melatonin nicotine nitrate norepinephrine "
    "oxygen oxytocin potassium progesterone prostacyclin prostaglandin serotonin sodium testosterone thyroxine levothyroxine "
    "vaccine vasopressin vitamin zinc adenosine glucose"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """The names that a question and its passages have."""

    #: words of all titles, texts, authors and journals, without accents and case
    words: frozenset[str]
    #: all of it as one text, without accents and case, single spaces
    text: str
    #: first letters of its words, in order
    initials: str
    #: names of journals
    journals: tuple[str, ...]
    #: years of publication by the family name of an author, as far as known
    years: dict[str, frozenset[int | None]]
    #: drugs and other terms
    terms: frozenset[str]

    @classmethod
    def of(cls, passages: Sequence[Passage], question: str) -> Shown:
        """Return the names of passages and of the question that they were retrieved for."""
        plain = [question, *(part for one in passages for part in _parts(one))]
        text = " ".join(_folded(" ".join(plain)).split())
        found = _WORD.findall(text)
        years: dict[str, frozenset[int | None]] = {}
        for one in passages:
            for author in one.authors:
                family = _folded(parts_of(author)[0])
                years[family] = years.get(family, frozenset()) | {one.year}
        return cls(
            words=frozenset(found),
            text=text,
            initials="".join(word[0] for word in found),
            journals=tuple({_folded(one.journal) for one in passages if one.journal}),
            years=years,
            terms=frozenset(ALIASES.get(one, one) for one in terms(" ".join(plain))),
        )

    def has(self, name: str) -> bool:
        """Return whether every word of a name occurs."""
        return self.words.issuperset(_WORD.findall(_folded(name)))


def invented(sentence: str, shown: Shown) -> tuple[str, ...]:
    """Return the names of authors, journals, trials and drugs in a sentence that no passage has, each once, as written.

    A gap that was left for one, as in "[author] et al. (2010)", is such a name.

    Args:
        sentence: a sentence of an answer.
        shown: names of the question and the passages.
    """
    gaps = [one[0] for one in _GAP.finditer(sentence)]
    every = (
        *gaps,
        *_authors(sentence, shown),
        *_journals(sentence, shown),
        *_trials(sentence, shown),
    )
    found = [one for one in every if not any(one in other and one != other for other in every)]
    drugs = sorted(substances(sentence) - _NATURAL - shown.terms)
    return tuple(dict.fromkeys((*found, *drugs)))


def uncited(sentence: str) -> str:
    """Return a sentence with spaces in place of its citations of authors, whose years are no figures."""
    for pattern in (*_AUTHORS, _GAP):
        sentence = pattern.sub(lambda found: " " * len(found[0]), sentence)
    return sentence


def _parts(passage: Passage) -> Iterable[str]:
    known = (passage.title, passage.text, passage.journal, passage.pmid, passage.doi, passage.pmcid)
    yield from filter(None, (*known, *passage.authors, *passage.trials, *passage.mesh))
    if passage.year is not None:
        yield str(passage.year)


def _authors(sentence: str, shown: Shown) -> Iterator[str]:
    for pattern in (*_AUTHORS, _BY):
        for found in pattern.finditer(sentence):
            names = [name for part in ("first", "second") if (name := found.groupdict().get(part))]
            if all(map(shown.has, names)) and _dated(names, found.groupdict().get("year"), shown):
                continue
            said = found["first"] if pattern is _BY else found[0]
            yield said if "(" in said or "[" in said else said.rstrip(")]")


def _dated(names: Sequence[str], year: str | None, shown: Shown) -> bool:
    """Return whether authors may have published in a year: it stands somewhere, or the year of a work of theirs is unknown."""
    if year is None or year in shown.words:
        return True
    known = [shown.years.get(_folded(name)) for name in names]
    return any(one is None or None in one for one in known)


def _journals(sentence: str, shown: Shown) -> Iterator[str]:
    for found in _JOURNAL.finditer(sentence):
        name = " ".join(word for word in found[0].split() if word != "The")
        said = _folded(name)
        if said not in shown.text and not any(_abbreviates(one, said) for one in shown.journals):
            yield name


def _abbreviates(one: str, other: str) -> bool:
    """Return whether one of two names of a journal abbreviates the other: word by word, or by its initials."""
    short, long = sorted(
        (
            [word for word in _WORD.findall(name) if word not in _PLAIN - {"journal", "medical"}]
            for name in (one, other)
        ),
        key=lambda some: (len(some), sum(map(len, some))),
    )
    if len(short) == 1 and len(long) > 1:
        every = _WORD.findall(max(one, other, key=len))
        letters = {"".join(word[0] for word in some) for some in (every, long)}
        return short[0] in letters
    return len(short) == len(long) and all(
        b.startswith(a) or a.startswith(b) for a, b in zip(short, long, strict=True)
    )


def _trials(sentence: str, shown: Shown) -> Iterator[str]:
    for found in _NUMBER.finditer(sentence):
        if (found["digits"] or found["doi"].rstrip(".,;").lower()) not in shown.text:
            yield found[0].rstrip(".,;")
    for found in _ACRONYM.finditer(sentence):
        name = found["name"]
        if sum(map(str.isupper, name)) >= _CAPITALS and not _known(name, shown):
            yield found[0]
    for found in _NAMED.finditer(sentence):
        own = [word for word in _WORD.findall(_folded(found["name"])) if word not in _PLAIN]
        if own and not shown.words.issuperset(own):
            yield found[0].removeprefix("The ")


def _known(acronym: str, shown: Shown) -> bool:
    parts = [part for part in _WORD.findall(_folded(acronym)) if part not in _PLAIN]
    return all(
        part in shown.words
        or part.removesuffix("s") in shown.words | _GENERIC
        or part in shown.initials
        or part in shown.text
        for part in parts
    )


def _folded(text: str) -> str:
    """Return a text without accents and case."""
    if text.isascii():
        return text.lower()
    return "".join(
        one
        for one in unicodedata.normalize("NFKD", text.casefold())
        if not unicodedata.combining(one)
    )
