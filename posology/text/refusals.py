"""Whether a model's free-text reply declines to answer.

A reply is a refusal if some clause of it declines (says that the reply, or the passages it was
to be drawn from, hold no answer) and no other clause says anything of substance. That medicine
does not know ("the cause is unknown", "no evidence that …") is an answer.
Precision and recall: ``python -m evals.refusals``.
"""

from __future__ import annotations

import re

from posology.text.sentences import split

#: Code points of a clause that are read: a bound on the work, far above any refusal.
MAX_CLAUSE = 600

_MARKUP = re.compile(
    r"\[[^\[\]]{0,80}\]|\((?:pmid|pmc|passages?|source|doc|ref|see)\b[^()]{0,80}\)|[*_`#>]+",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^\s*(?:final answer|short answer|answer|response|verdict|a)\s*[:=-]\s*")
_CONTRAST = re.compile(
    r"[;—]|\s[–-]\s|(?:,\s*)?\b(?:but|however|although|though|nevertheless|nonetheless|yet|"
    r"that said|except that)\b,?"
)
_COURTESY = re.compile(
    r"\b(?:i am )?(?:very |so |really )?(?:sorry|afraid|unfortunately|regrettably|hmm+|nope)\b,?"
)
#: A clause that concedes: the verdict is in what follows its comma.
_CONCESSION = re.compile(
    r"^\W*(?:although|though|even though|while|whilst|whereas)\b([^,]*),", re.IGNORECASE
)
_SAID = re.compile(r"(?<=\w )[\"“][^\"”]{0,80}[\"”]")
_WORD = re.compile(r"[^\W_]+")
_CONTRACTIONS = (
    (re.compile(r"\b(?:can't|can not)\b"), "cannot"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"n't\b"), " not"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\bi'd\b"), "i would"),
    (re.compile(r"\b(it|that|there)'s\b"), r"\1 is"),
)

_KIND = (
    r"(?:passages?|contexts?|documents?|abstracts?|texts?|excerpts?|sources?|snippets?|"
    r"articles?|paragraphs?|references?|material)"
)
_GIVEN = (
    r"(?:provided|given|available|supplied|retrieved|above|cited|quoted|listed|present|"
    r"presented|shown|following|described)"
)
#: "available evidence" is what medicine knows, "provided evidence" is what the model was given.
_LOOSE_KIND = r"(?:literature|information|evidence|data|content|studies|trials|papers|research)"
_HANDED = r"(?:provided|given|supplied|retrieved|above)"
_THESE = (
    r"(?:the|these|those|this|that|any|all|each|either|both|my|your|(?:any|all|each|none|neither|"
    r"one|both|some) of(?: the| these| those| my| your)?)"
)
#: What the model was given to read. "the text" and "passages", but not the start of "text messages".
_SOURCE = (
    rf"(?:(?:{_THESE}\s+)?(?:\w+\s+)?(?:{_GIVEN}\s+{_KIND}|{_HANDED}\s+{_LOOSE_KIND}|"
    rf"{_LOOSE_KIND}\s+{_HANDED})|{_THESE}\s+(?:\w+\s+)?{_KIND}(?:\s+{_GIVEN})?|"
    r"(?:passages|contexts|documents|abstracts|excerpts|sources|snippets|texts|context)\b"
    rf"(?:\s+{_GIVEN})?|passage \d+)(?! of\b| to\b| messages?\b| review\b|-)"
)
_NOT = (
    r"(?:(?:do|does|did|could|is|are|was|were|would) (?:not|never)|cannot|neither|fail(?:s|ed)? to)"
)
_TELL = (
    r"(?:contain|provide|mention|include|address|answer|specify|state|discuss|give|report|say|"
    r"describe|cover|offer|indicate|have|hold|make|tell|name|list|detail|explain|help|allow|"
    r"present|touch|speak|deal|relate|specifically|directly|explicitly|actually|appear|seem)"
)
#: What a source finds out, as opposed to what it contains: "do not show" is a finding.
_FIND = (
    r"(?:report|show|state|sa(?:y|id)|f(?:ind|ound)|suggest|indicate|note|conclude|describe|agree|disagree|conflict|"
    r"demonstrate|recommend|favou?r|support|warn|advise|confirm|change)"
)
_ABSENCE = (
    r"(?:no|nothing|not|never|neither|none|cannot|lack|lacks|omit|omits|silent|unanswered|"
    r"unrelated|irrelevant|insufficient|only in passing)"
)
_ASK = r"(?:answer|determine|say|tell|know|respond|conclude|judge|decide|identify|establish|infer)"
_DONE = r"(?:determined|answered|established|inferred|found|concluded|ascertained|derived|deduced)"
_STATED = (
    r"(?:mentioned|specified|stated|provided|given|reported|discussed|addressed|described|covered|"
    r"available|found|included|contained|present|answered|indicated|explained|listed|supported)"
)
_DETAIL = r"(?:information|context|detail|details|info)"
_PREPOSITION = r"(?:in|from|by|within|on|based on|with|using|given|on the basis of)"

# Patterns as text are compiled at their first use: it takes as long as the rest of a command's own modules.
#: A whole reply that declines in a word or two.
_BARE = (
    r"(?:n a|na|null|nil|unknown|undetermined|indeterminate|unsure|idk|no idea|no clue|unanswerable|not answerable|not answered|refused?|do(?:es)? not know|(?:data|information) (?:un|not )available|"
    r"no (?:answer|response|result|information|info)s?|no (?:(?:clear|direct|relevant) )?evidence(?: (?:found|available|given|provided))?|(?:answer )?not "
    r"(?:sure|known|available|applicable|clear|enough information|mentioned|specified|stated|"
    r"provided|found|given|reported|in (?:the )?(?:passages?|context|text)))"
)

_DECLINES = "|".join(
    (
        # the speaker cannot
        (
            r"\bi (?:really |simply |honestly |just )?(?:do|could|did|was|am|would|will) not\b"
            r"(?! recommend)"
        ),
        (
            r"\bi (?:cannot|have no|lack|am unable|was unable|must decline|have to decline|"
            r"would need|need more|found no(?:thing)? (?:answer|information|mention|passage|in))"
        ),
        (
            rf"^(?:cannot|unable to|not able to|not possible to|impossible to|could not|did not) "
            rf"(?:be )?(?:{_ASK}|{_DONE}|find|locate|provide|give)\b"
        ),
        (
            r"\bwe (?:cannot|could not|do not|are unable to) (?:\w+ly )?"
            rf"{_ASK}\b[^.]*(?:\b{_SOURCE}|\bthis\b|\bthat\b|question)"
        ),
        # the sources do not
        rf"\b{_SOURCE}[^.]{{0,60}}?\b{_NOT} (?:\w+ly )?{_TELL}\b",
        (
            rf"\b{_SOURCE} (?:lack|omit|lacks|omits|say nothing|says nothing|(?:is|are) silent|"
            r"(?:is|are) (?:not (?:relevant|sufficient|enough|about)|irrelevant|insufficient|"
            r"unrelated))\b"
        ),
        (
            rf"\b(?:none|neither|nothing)\b (?:of )?(?:in )?{_SOURCE}[^.]{{0,40}}?"
            r"\b(?:mention|address|contain|answer|discuss|provide|say|state|report|describe|give|"
            r"specif|cover|relevant|relate|deal|helps?\b|about|pertain|include|allow|indicate)"
        ),
        (
            r"^(?:none|neither)(?: of (?:them|these|those))? (?:mention|address|contain|answer|"
            r"discuss|provide|say|state|specif|reports?\b|gives?\b|lists?\b)"
        ),
        rf"^no {_SOURCE} \w*\s*(?:mention|address|contain|answer|discuss|provide|say|state)",
        (
            r"^(?:they|it)\s+(?:do|does|did) not "
            r"(?:mention|address|answer|discuss|specify|state|say|report)\b"
        ),
        (
            r"^(?:does|do|did) not (?:\w+ly )?(?:say|mention|specify|state|appear|address|answer|discuss|compare|examine|"
            r"evaluate|assess|investigate|explore|cover)\b"
        ),
        (
            r"^(?:does|do|did) not (?:\w+ly )?(?:provide|contain|include|give|offer) (?:any |enough |direct |specific )*"
            rf"(?:{_DETAIL}|answers?)\b"
        ),
        (
            rf"\b{_SOURCE} (?:\w+ly )?(?:contain|provide|offer|give|have|hold|include|present|"
            r"make)s? (?:no|little|nothing|insufficient)\b(?! (?:evidence|support) (?:that|for|of))"
        ),
        rf"\b{_SOURCE} (?:\w+ )?(?:only|instead) (?:discuss|cover|focus|concern|deal|describe|relate)",
        rf"\b{_SOURCE} (?:is|are) (?:only )?about\b.*\bnot\b",
        (
            r"\b(?:studies|papers|research|they|none|nothing|neither)\b"
            rf"[^.,]{{0,40}}? (?:{_NOT} )(?:\w+ly )?(?:address|answer|discuss|mention|specify|cover)\b"
        ),
        r"\bnot (?:mentioned|discussed|covered|addressed|answered|stated|given|found) here\b",
        r"^not (?:in|from|among) " + _SOURCE,
        r"\b(?:un|not )answerable\b",
        r"\bwould (?:require|need) (?:more|additional|further|other) (?:information|context|passages)",
        rf"\b{_DETAIL}\b[^.]{{0,60}} (?:is|are) (?:unavailable|missing|lacking|absent)\b",
        r"\b(?:outside|beyond) the scope\b",
        (
            rf"^\W*{_SOURCE}(?: \d[\d, and–-]*)?(?! of\b| to\b) (?:you gave me |at hand )?"
            rf"(?:(?!{_FIND}|that\b|{_ABSENCE}\b)[\w,]+ ){{0,8}}{_ABSENCE}\b"
            rf"(?! (?:\w+ly )?{_FIND}| (?:evidence|support|benefit|difference|effect|increase))"
        ),
        r"\bsay(?:s)? nothing\b",
        (
            r"\b(?:not|never|no|nowhere|nothing|none|cannot|\w+able|unanswered|outside|absent|"
            r"missing|lacking|insufficient|unclear|impossible)\b[^.]{0,60}?\b(?:in|from|by|within|"
            rf"on|with|outside)\s+{_SOURCE}(?: \w+){{0,2}}$"
        ),
        rf"^nowhere (?:in|within) {_SOURCE}",
        rf"^(?:nothing|outside|beyond) \w* ?{_SOURCE}",
        r"\bquestion (?:remains|is|goes|lies|falls|stays) (?:unanswered|unaddressed|outside)\b",
        rf"^there (?:is|are|was|were) no {_KIND} (?:about|on|that|which|for|relevant|to)\b",
        (
            r"^they (?:contain|provide|offer|give|include|have) no (?:\w+ ){0,2}?"
            r"(?:data|information|details?|answers?|mention)\b"
        ),
        (
            r"\b(?:none|neither|nothing|not one) (?:of )?(?:them|these|those|passages?|abstracts?)"
            rf" ?(?:\w+ )?{_TELL}"
        ),
        (
            r"^(?:the |that |this )?(?:no )?(?:\w+ )?(?:information|evidence|data|detail|answer)s? "
            r"(?:(?:is|was|are|were) )?(?:not )?(?:provided|found|given|supplied)$"
        ),
        (
            rf"^(?!.*\b(?:according|based|{_FIND}))(?=.*\b(?:passages?|abstracts|excerpts|snippets)"
            rf"\b)(?=.*\b{_ABSENCE}\b)"
        ),
        rf"^no (?:\w+ )?{_KIND} (?:was |were )?found$",
        rf"\bunknown (?:based )?(?:on|from) {_SOURCE}",
        # there is nothing in the sources
        r"^(?:there (?:is|was) )?(?:nothing|no \w+) (?:\w+ )?here\b",
        rf"^(?:nothing|no {_KIND}|none)(?: \w+)? (?:is|are|was|were) (?:\w+ly )?(?:relevant|found)$",
        rf"^no {_SOURCE} (?:is|are|was|were|seems?) (?:\w+ly )?(?:relevant|related|useful|on|about)",
        r"\bi (?:could |can |was able to )?(?:find|found|see|saw|have|know) (?:no|nothing|little)\b",
        rf"\b(?:no|not any|nothing)\b[^.]{{0,80}}?\b{_PREPOSITION} {_SOURCE}",
        (
            r"^(?:there (?:is|was) )?(?:no|not any) (?:relevant |specific |direct |"
            r"further |explicit |useful |clear |definite |definitive |such )?(?:mention of(?!.* in (?!the passages|the context|the text|these|any))|answer\b|passages? (?:that|which|"
            rf"mention|contain|answer)|{_DETAIL}(?: \w+){{0,6}}? (?:available|provided|given|"
            rf"found|present)|{_DETAIL} (?:about|on|regarding|concerning|to)\b)"
        ),
        (
            rf"\b{_DETAIL} (?:about|on|regarding|concerning|needed|required|requested|to)\b[^.]*"
            rf"\b(?:is|are|was|were) not {_STATED}"
        ),
        # not enough
        (
            rf"\b(?:insufficient|not enough|inadequate|too little|not sufficient|"
            rf"limited)\b[^.]{{0,60}}?\b{_PREPOSITION} {_SOURCE}"
        ),
        (
            rf"\b(?:insufficient|not (?:enough|sufficient)|too little|inadequate) "
            rf"(?:\w+ )?(?:{_DETAIL}\b|(?:evidence|data) to (?:answer|respond|reply)\b)"
        ),
        (
            rf"\b(?:more|additional|further) {_DETAIL} (?:is|are|would be) (?:needed|required|"
            r"necessary)"
        ),
        # it cannot be told
        (
            rf"\b(?:cannot|could not) be (?:\w+ly )?{_DONE}\b[^.]*"
            rf"\b{_PREPOSITION} {_SOURCE}"
        ),
        (
            rf"^(?:this|it|that|the answer|(?:(?:the|this|your) )?question)(?: itself)? (?:cannot|"
            rf"could not) be (?:\w+ly )?{_DONE}\b(?! that\b)"
        ),
        (
            rf"\b(?:not possible|impossible|unclear|not clear|no way|difficult|hard) (?:to {_ASK}\b)?"
            rf"[^.]*\b{_PREPOSITION} {_SOURCE}"
        ),
        rf"\b{_PREPOSITION} {_SOURCE}\b.*\b(?:not possible|impossible|unable|cannot be {_DONE})\b",
        r"\b(?:not possible|impossible|no way) to (?:answer|tell|say)\b",
        r"\b(?:question|it)(?: is|'s) (?:unanswerable|not answerable|outside|beyond)\b",
        # it is not stated
        (
            rf"\b(?:is|are|was|were) not (?:\w+ly )?(?:{_STATED} )?(?:anywhere )?"
            rf"{_PREPOSITION} {_SOURCE}"
        ),
        rf"\b(?:absent|missing) from {_SOURCE}",
        rf"^(?:\w+ly )?not (?:\w+ly )?{_STATED} (?:anywhere )?{_PREPOSITION} {_SOURCE}",
        r"^the (?:correct |exact )?answer (?:is|was) not ",
        r"\b(?:is|are|was|were) not (?:specified|stated|mentioned|discussed|covered|addressed|answered)$",
    )
)

#: Says nothing about medicine: courtesies, and what the sources are about instead.
_FILLER = (
    r"\W*(?:please|consult|sorry|my apologies|apologies|regrettably|regretfully|i am sorry|i apologi[sz]e|unfortunately|hope|let me know|"
    r"if you|could you|for (?:more|further)|as an ai|you (?:may|should|might|could|can|need|would)|"
    r"i (?:would|can|could|suggest|recommend|am only|only|searched|looked|read|reviewed|checked)|"
    r"no (?:further|other|more) |(?:more|further|additional) (?:information|context|research)|"
    r"(?:the|this|your) question (?:asks|is about|concerns)|"
    rf"(?:{_SOURCE}|passages? \d+|they|these|it|all(?: of (?:them|these))?|the (?:first|second|third|"
    r"other|others|remaining|last)(?: \w+)?|(?:one|both|some|two|three) (?:\w+ )?(?:passages?|"
    r"abstracts?)?)[\d, and–-]*\s*"
    r"(?:only |all |mainly |mostly |instead |rather |primarily |briefly |do |does )?"
    r"(?:discuss|focus|describe|mention|cover|address|concern|talk|deal|relate|refer|pertain|compare|examine|evaluate|assess|"
    r"investigate|explore|"
    r"(?:is|are) (?:about|on|all about|only about|limited)|contain|include)"
    r"(?:e?s)?\b(?! that\b))"
)


#: The sources hold no information: what no finding of a study is worded as, unlike "the trials did not show".
_UNTOLD = (
    rf"\b{_SOURCE}[^.]{{0,60}}?\b{_NOT} (?:\w+ly )?(?:contain|provide|include|give|offer|have|answer|address)\b"
    rf"[^.]{{0,40}}?\b(?:{_DETAIL}|answers?|question)\b"
    rf"|\b{_SOURCE}[^.]{{0,60}}?\b{_NOT} (?:\w+ly )?{_TELL} (?:whether|if|how|what|which|why)\b"
)


def misses_answer(reply: str) -> bool:
    """Return whether ``reply`` is a refusal that says that the sources hold no answer.

    It is one whatever it quotes: quotes cannot bear out that something is missing.
    """
    return re.search(_UNTOLD, _plain(reply)) is not None and is_refusal(reply)


def declines(reply: str, *, quoted: bool) -> bool:
    """Return whether an answer declines in its words, whatever its verdict.

    One with standing quotes is a refusal only if it says that the sources hold no answer: "no benefit was found" is an answer
    that sounds like one.

    Args:
        reply: the answer in words.
        quoted: whether a quote stands behind it.
    """
    return misses_answer(reply) if quoted else is_refusal(reply)


def is_refusal(reply: str) -> bool:
    """Return whether ``reply`` declines to answer; an empty reply does.

    Case, markup, citations and courtesies do not matter. A reply that declines and then answers
    all the same ("I am not sure, but passage 1 states that …") is an answer.
    """
    text = _SAID.sub(" ", _MARKUP.sub(" ", reply).replace("’", "'")).strip()
    if _is_bare(text):
        return True
    declined = False
    for sentence in split(text):
        for clause in _clauses(sentence.of(text)):
            declines = re.search(_DECLINES, clause) or _is_bare(clause)
            if not declines and clause and not re.match(_FILLER, clause):
                return False
            declined = declined or bool(clause and declines)
    return declined


def _is_bare(text: str) -> bool:
    words = " ".join(_WORD.findall(_plain(text)))
    return not words or re.fullmatch(_BARE, words) is not None


def _clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence, in plain lower case, parted where the reply may turn round."""
    main = _plain(_CONCESSION.sub("", sentence))
    clauses = (clause.strip(" ,.:!?\t\n\"'()") for clause in _CONTRAST.split(main))
    return [" ".join(clause[:MAX_CLAUSE].split()) for clause in clauses]


def _plain(text: str) -> str:
    """``text`` in lower case and without contractions."""
    text = _LABEL.sub("", text.lower(), count=1)
    for contraction, spelled in _CONTRACTIONS:
        text = contraction.sub(spelled, text)
    return _COURTESY.sub(" ", text)
