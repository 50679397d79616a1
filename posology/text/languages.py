"""The language of a question that is not English, by its script and its function words.

Function words decide, because names, drugs and quoted titles stay the same in every language. In doubt a question is
English. Of 81 made-up questions in twelve languages it recognises 76 (``tests/unit/text/test_languages.py``); of 13,645
English questions and claims (PubMedQA, BioASQ, CovidQA, SQuAD, SciFact, HealthVer) it takes none for foreign.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

#: weight of function words from which on a question is not English
_ENOUGH = 1.5
#: function words of English that hardly occur in the others
_ENGLISH_WORDS = (
    "the of and is are was were does did do to with without for from by than or not what which "
    "who whom how when where why there their this that these those it its be been being has "
    "have had can could should would may might will after before between among during on at as "
    "into about if versus vs any other more less "
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
#: words that are of one language alone, each of which is enough where no English one stands
_SURE = {
    "German": "und oder welche welcher welches reduziert verringert verhindert verursacht senkt erhöht schützt",
}
#: function words by language; those before the bar also begin names ("de Quervain"), and count half
_WORDS = {
    "French": "le la du de des un d l | les une est sont dans pour avec chez que qui quel quelle quels quelles "
    "comment pourquoi peut peuvent faut doit elle ils elles et ou sur sans après avant moins par aux ce cette "
    "ces au entre il t qu n s'il lors pendant était sa ses leur existe réduit",
    "German": "von der die das des den am was | ist sind wird werden kann können welche welcher welches wie warum "
    "und oder mit bei für nicht ein eine einer einem eines dem zur zum im nach vor auf aus über durch gegen es gibt "
    "hilft wirkt soll sollte sollten haben hat senkt zwischen ohne wann wenn als auch",
    "Spanish": "el la los las de del un | una es son en para con qué que cuál cuáles cómo por puede pueden debe y "
    "sin sobre se al entre más menos cuándo cuánto existe hay lo su sus después antes reduce está",
    "Italian": "il la di da del un | lo i gli una è sono per con che quale quali come perché può possono deve della "
    "dei delle degli nel nella nei al alla e tra più meno dopo prima senza sul si riduce esiste qual",
    "Portuguese": "o a os as de do da dos das | um uma é são em para com que qual quais como por pode podem deve na "
    "nos nas ao e ou sem sobre entre mais menos após antes existe há reduz não pelo pela",
    "Dutch": "van de der den | het een zijn met voor bij welke welk hoe waarom kan kunnen wordt worden en naar op te "
    "niet door tegen tussen zonder aan uit helpt verlaagt ook dan wat heeft hebben moet",
}  # fmt: skip
#: scripts by the first word of their letters' names in Unicode, and what to call them
_SCRIPTS = {
    "CYRILLIC": "a language in Cyrillic script",
    "ARABIC": "Arabic or Persian",
    "HEBREW": "Hebrew",
    "DEVANAGARI": "Hindi",
    "CJK": "Chinese or Japanese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "THAI": "Thai",
    "GREEK": "Greek",
}
_WORD = re.compile(r"[^\W\d_]+")
#: not the letters of an id such as 622d13a8e; "l" of "l'eau", but neither that of "3 l" nor the "d" of "vitamin D"
_WHOLE = re.compile(r"(?<!\w)(?:[cdjlmnst](?=['’])|(?![cdjlmnst](?!\w))[^\W\d_]+(?!\w))")
#: a citation, which is Latin
_CITED = re.compile(r"\bet al\b")


def _weights(words: str) -> dict[str, float]:
    half, _, full = words.partition("|")
    return {**dict.fromkeys(half.split(), 0.5), **dict.fromkeys(full.split(), 1.0)}


_WEIGHTS = {
    language: _weights(words) | dict.fromkeys(_SURE.get(language, "").split(), _ENOUGH)
    for language, words in _WORDS.items()
}


def foreign(text: str) -> str | None:
    """Return the language of a question that is not English; ``None``: it is English, or cannot be told."""
    text = _CITED.sub("", unicodedata.normalize("NFC", text).lower())
    words = frozenset(_WHOLE.findall(text))
    return _by_script(_WORD.findall(text)) or _by_words(words, asks_in_spanish="¿" in text)


def _by_script(words: list[str]) -> str | None:
    """Return the language of most letters, if they are not Latin: a Greek letter in a name is not Greek."""
    letters = Counter(
        unicodedata.name(letter, "").partition(" ")[0] for word in words for letter in word
    )
    total = letters.total()
    if not total or letters["LATIN"] * 2 >= total:
        return None
    # Japanese mixes three scripts
    for kana in ("HIRAGANA", "KATAKANA"):
        if letters[kana]:
            return _SCRIPTS[kana]
    found = next((name for name, _ in letters.most_common() if name in _SCRIPTS), None)
    return None if found is None else _SCRIPTS[found]


def _by_words(words: frozenset[str], *, asks_in_spanish: bool) -> str | None:
    scores = {
        language: sum(weights.get(word, 0.0) for word in words)
        for language, weights in _WEIGHTS.items()
    }
    scores["Spanish"] += 2 * asks_in_spanish
    best = max(scores, key=lambda language: scores[language])
    english = len(words & _ENGLISH)
    return best if scores[best] >= max(_ENOUGH, 2 * english + 0.5) else None
