"""Gains side by side, and whether they differ more than samples do, on records made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rag_repro.report import spread
from rag_repro.report.picture import Note
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

N = 40


@pytest.fixture
def filled(book):
    """Recall of k = 3 is 20 of 40 before; after, the data set's own number of 40."""

    def fill(n=N, **after):
        for cell in book.exhibit.cells():
            dataset = cell.keys["dataset"]
            if cell.keys["k"] != 3 or dataset not in after:
                continue
            right = after[dataset] if cell.keys["method"] == "qdc" else 20
            with open_record(book.records, cell.condition, {}) as record:
                for i in range(n):
                    line = {"id": f"q{i}", "cluster": f"q{i}", "hits": []}
                    record.append(line | {"scores": {"recall": float(i < right)}})
        return book.results()

    return fill


def made(book, results):
    return spread.of_gains(book.paper, "table1", results, "qdc", "sm", metric="recall")


def cells_of(table):
    return {row[1]: row[2:] for row in table.body}


def test_gains_stand_beside_the_papers_and_what_samples_would_spread(book, filled):
    table = made(book, filled(hotpotqa=38, musique=20))
    assert table.head[2] == "Concatenation minus Similarity, points [95 %], n"
    rows = cells_of(table)
    assert rows["HotpotQA"][0].startswith("+45.0 [")
    assert rows["HotpotQA"][0].endswith("n 40")
    assert rows["HotpotQA"][1] == "+5.8"  # 86.12 - 80.33 as printed
    assert rows["MuSiQue"] == ["0.0", ""] or rows["MuSiQue"][0].startswith("+0.0 [")
    assert rows["highest minus lowest"] == ["45.0", "0.0"]
    assert 0 < float(rows["were all gains equal: at most, in 95 % of samples"][0]) < 45
    assert rows["were all gains equal: so much by chance, p"][0] == "< 0.001"


def test_equal_gains_differ_no_more_than_samples_do(book, filled):
    rows = cells_of(made(book, filled(hotpotqa=30, musique=31)))
    assert rows["highest minus lowest"][0] == "2.5"
    assert float(rows["were all gains equal: so much by chance, p"][0]) > 0.2


def test_data_sets_are_drawn_apart():
    """Of equal scores the draws are equal, and would never part if not shuffled."""
    from rag_repro.study.scores import Scores, resampled

    ids = tuple(f"q{i}" for i in range(N))
    one = resampled(Scores(ids, ids, 100.0 * (np.arange(N) % 2)), "recall")
    observed, usual, share = spread.against_chance([one, one])
    assert observed == 0
    assert usual > 10
    assert share == 1


def test_tiers_are_apart_and_few_questions_have_no_say(book, filled):
    results = filled(hotpotqa=38, **{"world-B": 30})
    assert "highest minus lowest" not in cells_of(made(book, results))
    assert [row[0] for row in made(book, results).body] == ["testbed", "public"]


def test_a_data_set_of_few_questions_is_shown_alone(book, filled):
    rows = cells_of(made(book, filled(n=spread.FEWEST - 1, hotpotqa=25, musique=10)))
    assert set(rows) == {"HotpotQA", "MuSiQue"}


def test_without_records_it_is_not_run(book):
    shown = made(book, Results(book.records))
    assert isinstance(shown, Note)
    assert "rag-repro run mini.table1" in str(shown)
