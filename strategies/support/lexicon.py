"""Words of direction and of population: closed lists that rules compare between a sentence and its quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from posology.text._lexicon import words

_UP = (
    "increase increases increased increasing rise rises rose risen raise raises raised elevate elevates elevated elevating "
    "augment augments augmented enhance enhances enhanced enhancing upregulate upregulates upregulated higher greater more "
    "larger"
)
_DOWN = (
    "decrease decreases decreased decreasing reduce reduces reduced reducing reduction lower lowers lowered lowering "
    "diminish diminishes diminished decline declines declined attenuate attenuates attenuated downregulate downregulates "
    "downregulated less fewer smaller fall falls fell"
)
_WELL = "improve improves improved improving improvement better benefit benefits beneficial superior effective"
_BADLY = (
    "worsen worsens worsened worsening worse deteriorate deteriorates deteriorated impair impairs impaired inferior "
    "ineffective harm harms harmful"
)
_ON = (
    "activate activates activated activating activation induce induces induced promote promotes promoted stimulate "
    "stimulates stimulated"
)
_OFF = (
    "inhibit inhibits inhibited inhibiting inhibition suppress suppresses suppressed prevent prevents prevented block "
    "blocks blocked"
)
#: pairs of opposite directions
_PAIRS = (
    (_UP, _DOWN),
    (_WELL, _BADLY),
    ("longer prolong prolongs prolonged", "shorter shorten shortens shortened"),
    (_ON, _OFF),
    ("positive positively", "negative negatively"),
    ("safe", "unsafe"),
    ("high", "low"),
)
#: word → number of its pair, 1 for the first side and -1 for the other
DIRECTIONS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        word: (pair, sign)
        for pair, sides in enumerate(_PAIRS)
        for sign, side in zip((1, -1), sides, strict=True)
        for word in words(side)
    }
)

#: Groups of populations that exclude each other: a sentence about one is not borne out by quotes about another.
_POPULATIONS = (
    {
        "children": "child children childhood pediatric paediatric infant infants toddler toddlers",
        "newborns": "newborn newborns neonate neonates neonatal preterm",
        "adolescents": "adolescent adolescents adolescence teenager teenagers teen teens",
        "adults": "adult adults adulthood",
        "the elderly": "elderly geriatric seniors octogenarians",
    },
    {
        "women": "woman women female females girl girls mother mothers maternal pregnant pregnancy postmenopausal",
        "men": "man men male males boy boys father fathers paternal",
    },
    {
        "mice": "mouse mice murine",
        "rats": "rat rats",
        "rabbits": "rabbit rabbits",
        "dogs": "dog dogs canine",
        "pigs": "pig pigs porcine swine",
        "monkeys": "monkey monkeys macaque macaques",
        "zebrafish": "zebrafish",
        "flies": "drosophila",
        "yeast": "yeast saccharomyces cerevisiae",
        "worms": "elegans nematode nematodes",
    },
)
#: word → number of its group, name of its population
POPULATIONS: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        word: (group, name)
        for group, members in enumerate(_POPULATIONS)
        for name, forms in members.items()
        for word in words(forms)
    }
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
#: "type 1 diabetes", "stage III": a kind by its number
_KIND = re.compile(
    r"\b(type|stage|grade|phase)[\s-]+([0-9]{1,2}|[IV]{1,3})(?![\w.])", re.IGNORECASE
)
_ROMAN = MappingProxyType({"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"})


@lru_cache(maxsize=256)
def populations(text: str) -> frozenset[tuple[int | str, str]]:
    """Return the populations of a text, each as its group and its name; numbered kinds are groups of their own."""
    found: set[tuple[int | str, str]] = {
        POPULATIONS[word] for one in _WORD.finditer(text) if (word := one[0].lower()) in POPULATIONS
    }
    for kind, number in _KIND.findall(text):
        found.add((kind.lower(), _ROMAN.get(number.lower(), number)))
    return frozenset(found)
