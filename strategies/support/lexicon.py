"""Closed lists of words that rules compare between a sentence and its quotes: directions, populations, drugs, near denials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from posology.text._lexicon import words
from strategies.compression.checked import drugs

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
    # opposite kinds of one thing
    ("monoclonal", "polyclonal"),
    ("systolic", "diastolic"),
    ("benign", "malignant"),
    ("typical", "atypical"),
    ("agonist agonists", "antagonist antagonists"),
    ("dominant", "recessive"),
    ("homozygous homozygotes", "heterozygous heterozygotes"),
    ("inpatient inpatients", "outpatient outpatients"),
    ("left", "right"),
    (
        "oral orally",
        "intravenous intravenously subcutaneous subcutaneously intramuscular intramuscularly",
    ),
    ("preoperative preoperatively", "postoperative postoperatively"),
    ("hypertension hypertensive", "hypotension hypotensive"),
    (
        "hyperglycemia hyperglycaemia hyperglycemic hyperglycaemic",
        "hypoglycemia hypoglycaemia hypoglycemic hypoglycaemic",
    ),
    ("hyperkalemia hyperkalaemia", "hypokalemia hypokalaemia"),
    ("hypernatremia hypernatraemia", "hyponatremia hyponatraemia"),
    ("hypercalcemia hypercalcaemia hypercalcemic", "hypocalcemia hypocalcaemia hypocalcemic"),
    ("hypermagnesemia hypermagnesaemia", "hypomagnesemia hypomagnesaemia"),
    ("hyperphosphatemia hyperphosphataemia", "hypophosphatemia hypophosphataemia"),
    ("hyperthermia hyperthermic", "hypothermia hypothermic"),
    ("hypervolemia hypervolaemia", "hypovolemia hypovolaemia"),
    ("sensitive susceptible", "resistant insensitive"),
    ("symptomatic", "asymptomatic"),
    ("stable", "unstable"),
    ("hyperthyroidism", "hypothyroidism"),
    ("tachycardia", "bradycardia"),
)
#: pairs from this one on are of kinds, of which a text may name both
KINDS = next(i for i, (first, _) in enumerate(_PAIRS) if first == "monoclonal")
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
#: populations that are parts of one: a claim on children is borne out by what is said of newborns, not the reverse
INCLUDED: Mapping[str, frozenset[str]] = MappingProxyType(
    {"adults": frozenset({"the elderly"}), "children": frozenset({"newborns", "adolescents"})}
)
_OLDER = re.compile(
    r"\bolder\s+(?:adult|people|person|patient|individual|subject|men\b|women\b)", re.IGNORECASE
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
KIND = re.compile(r"\b(type|stage|grade|phase)[\s-]+([0-9]{1,2}|[IV]{1,3})(?![\w.])", re.IGNORECASE)
_ROMAN = MappingProxyType({"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5"})


@lru_cache(maxsize=256)
def populations(text: str) -> frozenset[tuple[int | str, str]]:
    """Return the populations of a text, each as its group and its name; numbered kinds are groups of their own."""
    found: set[tuple[int | str, str]] = {
        POPULATIONS[word] for one in _WORD.finditer(text) if (word := one[0].lower()) in POPULATIONS
    }
    for kind, number in KIND.findall(text):
        found.add((kind.lower(), _ROMAN.get(number.lower(), number)))
    return frozenset(found)


def is_older(population: str, text: str) -> bool:
    """Return whether a population is the elderly, and a text calls it "older adults"."""
    return population == "the elderly" and _OLDER.search(text) is not None


#: other names of a drug → the one that is compared
ALIASES: Mapping[str, str] = MappingProxyType(
    dict(
        pair.split("=")
        for pair in words(
            "adrenaline=epinephrine noradrenaline=norepinephrine paracetamol=acetaminophen oestradiol=estradiol "
            "oestrogen=estrogen clomifene=clomiphene ciclosporin=cyclosporine cyclosporin=cyclosporine frusemide=furosemide "
            "salbutamol=albuterol pethidine=meperidine lignocaine=lidocaine aciclovir=acyclovir glibenclamide=glyburide "
            "rifampicin=rifampin thyroxine=levothyroxine acetylsalicylic=aspirin acetylsalicylate=aspirin asa=aspirin "
            "beclometasone=beclomethasone amoxycillin=amoxicillin cefalexin=cephalexin azidothymidine=zidovudine "
            "azt=zidovudine bendrofluazide=bendroflumethiazide busulphan=busulfan chlortalidone=chlorthalidone "
            "colecalciferol=cholecalciferol colestyramine=cholestyramine cotrimoxazole=co-trimoxazole "
            "indometacin=indomethacin sulphasalazine=sulfasalazine stilboestrol=diethylstilbestrol"
        )
    )
)
#: classes of drugs, singular: "a beta-blocker" may be any of them
_CLASSES = words(
    "aminoglycoside amphetamine antacid anthracycline antibiotic anticholinergic anticoagulant anticonvulsant antidepressant "
    "antihistamine antihypertensive antimalarial antiplatelet antipsychotic antiretroviral barbiturate benzodiazepine "
    "beta-blockade beta-blocker biguanide bisphosphonate cephalosporin contraceptive corticosteroid coumarin diuretic "
    "fluoroquinolone glucocorticoid macrolide neuroleptic nsaid opiate opioid penicillin quinolone statin steroid "
    "sulfonamide sulfonylurea sulphonylurea tetracycline thiazide triptan vitamin"
)

#: words that say without a negation that something is not so, or makes no difference
_NEAR_DENIALS = re.compile(
    r"\b(?:similar(?:ly)?|compar(?:able|ably)|equivalent|identical|equal(?:ly)?|alike|same|un(?:changed|affected|altered|related)|"
    r"unlike|in-?significant|non-?significant|ns|absent|only|solely|rare(?:ly)?|seldom|scarce|few|minority|excluded|"
    r"contraindicat\w+|preclud\w+|dangerous|hazardous|harmful|p\s*[=>]\s*0?\.(?:0[5-9]|[1-9])\d*)(?![^\W_])",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def substances(text: str) -> frozenset[str]:
    """Return the drugs of a text, each by one name; no classes of drugs."""
    return frozenset(ALIASES.get(one, one) for one in drugs(text) if one not in _CLASSES)


def nearly_denies(text: str) -> bool:
    """Return whether a text says without a negation that something is not so, or makes no difference."""
    return _NEAR_DENIALS.search(text) is not None


_STUDY = (
    "(?:evaluat|determin|assess|investigat|examin|explor|compar|test|analy[sz]|ascertain|measur|characteri[sz]|"
    "describ|establish|estimat|find out|review|clarif|elucidat|quantif|validat|verif|define)"
)
#: how a sentence begins that says what a study set out to find
_ASKS = (
    r"(\W*(?:(?:background|objectives?|aims?|purpose|introduction|context)\b\W*)*)(?:"
    rf"to (?:\w+ly )?(?:{_STUDY}|stud|identif|develop|understand|know|see|learn|report|confirm|demonstrat|show)\w*|"
    r"(?:the |our )?(?:\w+ )?(?:aim|objective|purpose|goal)s? (?:of|was|were|is|are)\b|"
    r"(?:the authors?|we|(?:this|the (?:present|current)|our) \w+)(?: (?:was|were))? "
    rf"(?:\w+ly )?(?:aim|sought|set out|hypothesi|wanted|wish|intend|design|stud|{_STUDY})\w*)"
)
#: what is found, behind it
_FOUND = (
    r"[.;]\s*[A-Z\d]|;\s|,\s+(?:we\b|[^,]{0,80}\b(?:were|was|are|is|had|have|has)\b)|"
    r"\b(?:found|showed|observed|reported|concluded|revealed|suggest\w*)\b"
)
#: what a claim says that is on the question of a study
_ASKED = (
    r"\b(?:aim|objective|purpose|goal|whether|plan|protocol|design|sought|set out|look(?:ed|s)? at|hypothesi|ask|question|"
    rf"studied|{_STUDY})"
)


def only_asks(claim: str, sentence: str) -> bool:
    """Return whether a sentence says what a study set out to find, and a claim says that it is so."""
    asks = re.match(_ASKS, sentence, re.IGNORECASE)
    return (
        asks is not None
        # behind a heading such as "AIM."
        and re.search(_FOUND, sentence[asks.end(1) :]) is None
        and re.search(_ASKED, claim, re.IGNORECASE) is None
    )
