"""Answers guessed from the question alone: the rows that a method must beat.

About half of 2WikiMultihopQA can be guessed: comparison questions name their
two candidates, yes/no questions have one likelier answer. Each function is a
rule without a reader; what is counted is counted on questions that may be
trained on, never on the questions scored.
"""

from __future__ import annotations

import re

# Kinds of question that are guessed from their words alone: two candidates, or yes and no.
GUESSED = frozenset({"comparison", "bridge_comparison", "yes_no", "boolean"})
_AUXILIARY = frozenset(
    re.split(
        r"\s+",
        "is are was were am do does did has have had can could will would should shall may might "
        "must isn't aren't wasn't weren't don't doesn't didn't hasn't haven't hadn't",
    )
)
_ASKS = re.compile(r"\b(?:who|whose|whom|what|which|when|where|why|how)\b", re.IGNORECASE)
# "In" with a capital opens a title.
_LEADING = re.compile(r"^(?:(?i:between|out of|of|that of|among)|in)\s+")
_NAMED = (
    re.compile(
        r"^(?:between|of|out of|among)\s+(?:the\s+two,\s+)?(?P<first>.+?)\s+(?:and|or)\s+"
        r"(?P<second>.+?),\s+(?:who|whose|which|what)\b",
        re.IGNORECASE,
    ),
    re.compile(r"^(?P<first>.+?)\s+or\s+(?P<second>.+?):\s+(?:who|whose|which|what)\b"),
)


def _opens_with_auxiliary(clause: str) -> bool:
    words = clause.lower().replace("’", "'").split()
    return bool(words) and words[0] in _AUXILIARY


def is_yes_no(text: str) -> bool:
    """Whether a question asks for yes or no: it opens with an auxiliary verb.

    An opening clause is passed over ("In 1990, was ..."), unless it asks
    itself ("Which ..., was ..."). "Is A or B older?" asks for one of two.
    """
    clauses = text.strip().split(", ")
    opens = _opens_with_auxiliary(clauses[0])
    if not opens and len(clauses) > 1 and not _ASKS.search(clauses[0]):
        opens = _opens_with_auxiliary(clauses[1])
    return opens and options(text) is None


def options(text: str) -> tuple[str, str] | None:
    """The two candidates that a question offers, else None.

    Forms: "Which ..., A or B?"; "Was A or B born first?", where B is
    taken to end with its last capital (what follows is the comparison);
    "Of (the two,) A and B, which ...?"; "A or B: which ...?".
    """
    question = text.strip().rstrip("?").strip()
    for form in _NAMED:
        if named := form.match(question):
            return _short(named["first"], named["second"])
    parts = re.split(r"\s+or\s+(?:is\s+it\s+)?", question)
    if len(parts) != 2:
        return None
    before, second = parts[0].rstrip(" ,"), parts[1].strip(" ,")
    if _opens_with_auxiliary(before):
        first = before.split(None, 1)[1] if " " in before else ""
        named = re.match(r"(?:the\s+)?(?:[^\W\d_a-zß-öø-ÿ]\S*(?:\s+|$))+", second)
        second = named.group().strip() if named else ""
        if not first[:1].isupper() and not first.lower().startswith("the "):
            return None
    else:
        # The first comma, not the last: titles have commas of their own.
        first = before.partition(", ")[2]
    return _short(*(_LEADING.sub("", name.strip()) for name in (first, second)))


def _short(first: str, second: str) -> tuple[str, str] | None:
    """Both, where neither is too long for a name."""
    named = first and second and max(len(first.split()), len(second.split())) <= 12
    return (first, second) if named else None


def guess(text: str, *, closed: str = "yes") -> str | None:
    """What the rules together say: yes/no, else the first of two options, else nothing."""
    if is_yes_no(text):
        return closed
    pair = options(text)
    return None if pair is None else pair[0]
