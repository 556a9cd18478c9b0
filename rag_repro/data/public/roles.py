"""Static or dynamic: a heuristic for gold passages of public multi-hop questions.

DR-RAG (section 1) calls a passage static-relevant where the question leads to
it by itself, and dynamic-relevant where only another passage does. Public data
do not say which is which. Our stand-in: a gold passage is *static* where its
page's name (the title without a closing parenthetical) is contained in the
question, word for word after normalisation, and *dynamic* otherwise.

Known errors, both towards "dynamic": a question that names a page by an alias
or another spelling, or that describes it; and, towards "static", a title that
is an everyday word. The testbed has true roles; the data card counts these.
"""

from __future__ import annotations

import re
import unicodedata

STATIC, DYNAMIC = "static", "dynamic"

_PARENTHETICAL = re.compile(r"\s*\([^()]*\)\s*$")
_is_accent = unicodedata.combining
_ARTICLES = frozenset({"a", "an", "the"})


def split_words(text: str, articles: bool = False) -> tuple[str, ...]:
    """Lower-cased words without accents and punctuation, and by default without articles."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not _is_accent(c))
    found = re.findall(r"\w+", text.casefold())
    return tuple(w for w in found if articles or w not in _ARTICLES)


def page_name(title: str) -> str:
    """The title without a closing parenthetical: "Fences (film)" -> "Fences"."""
    return _PARENTHETICAL.sub("", title) or title


def named_in(title: str, question: str) -> bool:
    """Whether the page's name stands in the question as a run of whole words."""
    name, text = split_words(page_name(title)), split_words(question)
    if not name:  # a name made of articles, as "The The", keeps them
        name, text = (
            split_words(page_name(title), articles=True),
            split_words(question, articles=True),
        )
    n = len(name)
    return n > 0 and any(text[i : i + n] == name for i in range(len(text) - n + 1))


def role(title: str, question: str) -> str:
    return STATIC if named_in(title, question) else DYNAMIC
