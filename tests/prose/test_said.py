"""Sentences that state a result are typed by hand; here the records must bear each of them out.

New records may make one false: then mend the sentence, or the list beside it.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.prose import dragin, drrag, erm4, r2ag, together
from tests.prose.told import ROOT, Told

SAID = [*drrag.SAID, *erm4.SAID, *dragin.SAID, *r2ag.SAID, *together.SAID, *together.SAID_PAGES]
NAMED = {f"{said.page}: {said.sentence}": said for said in SAID}
# Nothing differs from anything; everything the other way round; everything far larger.
DISTORTIONS = (lambda x: 0.0, lambda x: -x, lambda x: 3 * x + 7)


def _text(page: str) -> str:
    path = ROOT / page if page.endswith(".md") else ROOT / "notebooks" / f"{page}.py"
    lines = path.read_text("utf-8").splitlines()
    return " ".join(" ".join(line.removeprefix("#").strip() for line in lines).split())


@pytest.mark.parametrize("name", NAMED)
def test_what_a_chapter_says_is_what_the_records_say(name):
    said = NAMED[name]
    assert said.sentence in _text(said.page), f"{said.page} does not say it any more"
    assert said.holds(Told()), f"{said.page} says what the records do not: {said.sentence}"


@pytest.mark.parametrize("name", NAMED)
def test_other_records_would_make_it_false(name):
    said = NAMED[name]
    assert not all(said.holds(Told(distort)) for distort in DISTORTIONS)


def test_no_sentence_stands_twice():
    times = Counter((said.page, said.sentence) for said in SAID)
    assert [name for name, n in times.items() if n > 1] == []
    assert len(NAMED) == len(SAID)
