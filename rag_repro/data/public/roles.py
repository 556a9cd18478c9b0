"""What is known of public multi-hop questions: roles of gold passages, and chains of steps.

Static or dynamic: a heuristic for gold passages.

DR-RAG (section 1) calls a passage static-relevant where the question leads to
it by itself, and dynamic-relevant where only another passage does. Public data
do not say which is which. Our stand-in: a gold passage is *static* where its
page's name (the title without a closing parenthetical) is contained in the
question, word for word after normalisation, and *dynamic* otherwise.

Known errors, both towards "dynamic": a question that names a page by an alias
or another spelling, or that describes it; and, towards "static", a title that
is an everyday word. The testbed has true roles; the data card counts these.

Chains of single-hop steps, from MuSiQue's decompositions and 2Wiki's evidences.

Hops: on MuSiQue the position of the step in the decomposition (Trivedi et al.
2022, so a 3-hop question has hops 1, 2, 3 even where two of them are
independent); on 2WikiMultihopQA the depth in the graph of evidence triples
(Ho et al. 2020): a triple whose subject is the object of another is one
deeper, so the two films of a bridge-comparison are hop 1, their directors 2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rag_repro.data.public.record import RecordStep, Row

STATIC, DYNAMIC = "static", "dynamic"

_PARENTHETICAL = re.compile(r"\s*\([^()]*\)\s*$")
_REFERENCE = re.compile(r"#(\d+)")
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


def musique_steps(row: Row, n_docs: int) -> tuple[RecordStep, ...]:
    """Steps of `question_decomposition`, "#1" replaced by the first step's answer."""
    steps: list[RecordStep] = []
    for number, part in enumerate(row.take("question_decomposition", list, []), start=1):
        inner = row.inner(part, f"step {number}")
        index = inner.take("paragraph_support_idx", int, None)
        if index is not None and not 0 <= index < n_docs:
            raise inner.bad(f"paragraph_support_idx {index} is not one of {n_docs} passages")
        asked = _REFERENCE.sub(
            lambda m: steps[int(m[1]) - 1].answer if 0 < int(m[1]) <= len(steps) else m[0],
            inner.take("question", str),
        )
        steps.append(RecordStep(asked, inner.take("answer", str), hop=number, doc=index))
    return tuple(steps)


def evidence_steps(row: Row, titles: Sequence[str]) -> tuple[RecordStep, ...]:
    """Steps of `evidences`, triples (subject, relation, object); `titles` of the gold passages.

    A step is supported by the gold passage whose page name is its subject.
    Where one subject and one gold title are left over (2Wiki writes entities as
    Wikidata does, titles as Wikipedia), they belong together; where more are,
    these steps have no passage.
    """
    triples = []
    for triple in row.take("evidences", list, []):
        strings = isinstance(triple, list) and all(isinstance(x, str) for x in triple)
        if not strings or len(triple) != 3:
            raise row.bad(f"an evidence is not (subject, relation, object): {str(triple)[:60]!r}")
        triples.append(triple)
    by_name = {split_words(page_name(t)): t for t in titles} | {split_words(t): t for t in titles}
    subjects = dict.fromkeys(split_words(s) for s, _, _ in triples)
    lost = [s for s in subjects if s not in by_name]
    spare = set(titles) - {by_name[s] for s in subjects if s in by_name}
    if len(lost) == len(spare) == 1:
        by_name[lost[0]] = spare.pop()
    return tuple(
        RecordStep(
            f"{s.strip()} >> {r}", o, hop=_depth(i, triples), title=by_name.get(split_words(s))
        )
        for i, (s, r, o) in enumerate(triples)
    )


def _depth(i: int, triples: Sequence[Sequence[str]]) -> int:
    """1 + the number of triples that lead to triple i (a circle ends the walk)."""
    depth, walked = 1, {i}
    subject = split_words(triples[i][0])
    while True:
        before = [
            j for j, t in enumerate(triples) if j not in walked and split_words(t[2]) == subject
        ]
        if not before:
            return depth
        depth, subject = depth + 1, split_words(triples[before[0]][0])
        walked.add(before[0])
