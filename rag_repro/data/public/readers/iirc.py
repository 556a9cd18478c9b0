"""IIRC (Ferguson et al. 2020): questions on a passage whose links must be followed.

`train.json`, `dev.json`: an array of {title, text, links: [{target}], questions:
[{qid, question, answer: {type, answer_spans, answer_value, answer_unit},
context: [{text, passage ("main" or a link's target)}]}]}.
`context_articles.json`, in the same folder: {lower-cased title: text with HTML}.

A question's passages are the one it is asked on (gold), of each linked article
the paragraphs that its context names (gold), and of each other linked article
the first paragraph (a distractor). IRCoT's preparation draws that paragraph by
lot; the rest is as there: paragraphs are lines of more than 10 words.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from rag_repro.data.public.opened_files import document, records
from rag_repro.data.public.record import Doc, MissingFile, Record, Row, unique

ARTICLES = "context_articles.json"
_TAG = re.compile(r"<[^>]*>")
_UNANSWERED = frozenset({"none", "bad"})


def read(path: Path) -> Iterator[Record]:
    """The answerable questions, with answer kinds span, value and binary."""
    (file,) = companion_files(path)
    articles = document(file, dict)
    for page in records(path):
        for i, row in enumerate(page.objects("questions", "question")):
            answer = row.inner(row.take("answer", dict), "answer")
            kind = answer.take("type", str)
            if kind in _UNANSWERED:
                continue
            yield Record(
                id=row.take("qid", str, None) or f"iirc-{page.place.split()[-1]}-{i}",
                question=row.take("question", str),
                answers=_answers(answer, kind),
                place=row.place,
                kind=kind,
                docs=tuple(_docs(page, row, articles)),
            )


def companion_files(path: Path) -> tuple[Path, ...]:
    found = path.with_name(ARTICLES)
    if not found.is_file():
        raise MissingFile(found, "", "no linked articles beside the questions", "put it there")
    return (found,)


def paragraphs(article: str) -> list[str]:
    """Lines of more than 10 words, tags taken out."""
    lines = (" ".join(x.split()) for x in html.unescape(_TAG.sub("", article)).split("\n"))
    return [x for x in lines if len(x.split()) > 10]


def _answers(answer: Row, kind: str) -> tuple[str, ...]:
    """Several spans are one answer together; a value also with its unit."""
    if kind == "span":
        return unique(
            [", ".join(one.text("text") for one in answer.objects("answer_spans", "span"))]
        )
    if kind == "binary":
        return unique([answer.take("answer_value", str)])
    if kind == "value":
        value, unit = answer.take("answer_value", str), answer.take("answer_unit", str, "")
        return unique([value, f"{value} {unit}" if unit.strip() else ""])
    raise answer.bad(f"answer type {kind!r} is none of span, value, binary, none, bad")


def _docs(page: Row, row: Row, articles: Mapping[str, object]) -> Iterator[Doc]:
    yield Doc(page.text("title"), page.text("text"), gold=True)
    named: dict[str, list[str]] = {}
    for context in row.objects("context", "context"):
        if (target := context.text("passage")) != "main":
            named.setdefault(target, []).append(" ".join(context.take("text", str).split()))
    for target, snippets in named.items():
        own = paragraphs(_article(target, articles))
        for text in dict.fromkeys(_home(snippet, own) for snippet in snippets):
            yield Doc(target, text, gold=True)
    known = {target.casefold() for target in named}
    for link in page.objects("links", "link", []):
        target = link.text("target")
        own = paragraphs(_article(target, articles))
        if own and target.casefold() not in known:
            known.add(target.casefold())
            yield Doc(target, own[0])


def _article(target: str, articles: Mapping[str, object]) -> str:
    found = articles.get(target, articles.get(target.lower(), ""))
    return found if isinstance(found, str) else ""


def _home(snippet: str, own: list[str]) -> str:
    """The paragraph with the snippet, or with most of its words; else the snippet itself."""
    words = set(snippet.casefold().split())
    best = max(
        own, key=lambda p: (snippet in p, len(words & set(p.casefold().split()))), default=""
    )
    if snippet in best or 2 * len(words & set(best.casefold().split())) > len(words):
        return best
    return snippet
