"""Lists as a former sees them, with an encoder of a few words; who tells gold apart in them."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np
import pytest

from rag_repro import data
from rag_repro.analysis import gold_signals
from rag_repro.lm import hub
from rag_repro.methods.r2ag.features import features
from rag_repro.methods.r2ag.method import placed
from rag_repro.methods.reading import PROMPTS
from rag_repro.schema import Soft
from rag_repro.show import passage_list

WORLD = "world-B-10@1000"


class Words:
    """A vector of a text's words, each a random direction of its own."""

    fingerprint = "words"

    def __init__(self):
        self.texts = []

    def encode(self, texts):
        self.texts += texts
        rows = np.array([sum(map(self._word, text.lower().split())) for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    @staticmethod
    def _word(word):
        seed = int.from_bytes(hashlib.sha256(word.strip("?.,").encode()).digest()[:4])
        return np.random.default_rng(seed).standard_normal(16)


@pytest.fixture(scope="module")
def world():
    return data.load(WORLD, split="test")


@pytest.fixture
def workshop():
    made = Words()
    return SimpleNamespace(words=made, encoder=lambda name: made)


@pytest.fixture(autouse=True)
def nothing_trained(tmp_path, monkeypatch):
    monkeypatch.setenv(hub.ARTIFACTS_VARIABLE, str(tmp_path / "artifacts"))


def test_a_list_is_what_the_method_ranks_and_tells(world, workshop):
    asked = world.questions[:2]
    one, two = gold_signals.rank(world, asked, workshop)
    assert [len(x.hits) for x in (one, two)] == [10, 10]
    assert {hit.passage.id for hit in one.hits} == set(asked[0].candidates)
    assert sum(one.labels) == len(asked[0].gold_ids)
    texts = [f"{h.passage.title} {h.passage.text}" for h in one.hits]
    made = Words().encode([asked[0].text, *texts])
    assert one.rows[:, 0] == pytest.approx(np.sort(one.rows[:, 0])[::-1])  # as ranked
    assert one.rows == pytest.approx(features(made[0], made[1:]), abs=1e-5)
    # Of the corpus only what the lists hold is encoded.
    assert len(set(workshop.words.texts)) <= 22


def test_the_table_has_a_line_a_passage_and_says_how_to_train_the_head(world, workshop):
    [one] = gold_signals.rank(world, world.questions[:1], workshop)
    table = passage_list(one, "r2ag-mixed")
    assert [row[0] for row in table.body] == list(range(1, 11))
    assert table.head[3:6] == ["r", "γ", "ζ"]
    assert table.body[0][3:6] == [f"{x:.3f}" for x in one.rows[0]]
    assert sum(bool(row[2]) for row in table.body) == sum(one.labels)
    assert str(table.body[0][-1]) == "not at hand: `rag-repro train r2ag-mixed`"


def test_the_head_of_a_trained_former_is_asked(world, workshop, tmp_path):
    import json

    from rag_repro.lm import former

    folder = tmp_path / "artifacts" / "r2ag-mixed"
    folder.mkdir(parents=True)
    sizes = {"n_features": 3, "width": 8}
    former.save(former.build_module("r2", 0, **sizes), folder)
    told = {"soft": "r2ag", "kind": "r2", "settings": sizes}
    base = {"name": "smollm2-135m", "sha256": "0"}
    (folder / "card.json").write_text(json.dumps({"base": base, "former": told}))
    held = gold_signals.rank(world, world.questions[:2], workshop)
    one, two = gold_signals.head_relevance("r2ag-mixed", held)
    assert one.shape == two.shape == (10,)
    assert ((one > 0) & (one < 1)).all()
    assert passage_list(held[0], "r2ag-mixed").body[3][-1] == f"{100 * one[3]:.0f}"
    assert "the head of r2ag-mixed" in gold_signals.feature_signals(held, "r2ag-mixed")


def test_the_two_prompts_are_one_but_for_the_embeddings(world, workshop):
    """What R²AG leaves as it is (r2ag.c35)."""
    [one] = gold_signals.rank(world, world.questions[:1], workshop)

    def prompt(name, soft):
        parts = PROMPTS[name].fill(one.question, one.hits, soft).segments
        return "".join(f"⟨{p.index}⟩" if isinstance(p, Soft) else str(p) for p in parts)

    ours, plain = prompt("r2ag", placed(one.rows)), prompt("r2ag_rag", ())
    assert "[1]similarity: ⟨0⟩(Title: " in ours
    assert "⟨" not in plain
    for i in range(10):
        ours = ours.replace(f"similarity: ⟨{i}⟩", "")
    added = " The similarity information is provided in front of search results."
    assert ours.replace(added, "") == plain


def listed(label_rows, question="q"):
    """A list whose features are given, gold where `True`."""
    gold = [f"p{i}" for i, (is_gold, _) in enumerate(label_rows) if is_gold]
    asked = SimpleNamespace(id=question, unit=question, gold=gold, gold_ids=gold)
    hits = tuple(
        SimpleNamespace(passage=SimpleNamespace(id=f"p{i}")) for i in range(len(label_rows))
    )
    rows = np.array([row for _, row in label_rows], dtype=np.float32)
    return gold_signals.RankedList(asked, hits, rows)


def test_areas_say_what_a_feature_tells_and_what_others_add():
    rng = np.random.default_rng(0)
    held = []
    for i in range(40):
        # zeta is all there is to know; r is chance, gamma the same everywhere.
        place = int(rng.integers(5))
        rows = [(j == place, (rng.random(), 1.0, float(j == place))) for j in range(5)]
        held.append(listed(rows, f"q{i}"))
    signals = gold_signals.feature_signals(held, "r2ag-mixed")
    of = {row[0]: row[1:] for row in gold_signals.areas(signals, held, "r", gold_signals.RANKED)}
    zeta, r, every = of["ζ"], of["r"], of[gold_signals.FEATURES]
    assert (zeta[0].estimate, round(zeta[0].lo, 1)) == (100, 91.2)  # what forty lists may hide
    assert of["γ"][0].estimate == 50
    assert r[1] is None
    assert every[2].estimate > 20
    assert every[0].estimate == 100
    assert of[gold_signals.RANKED][0].estimate < 75
    assert zeta[1].estimate == pytest.approx(100 - r[0].estimate)


def test_nothing_is_fitted_to_the_questions_that_it_is_asked_about():
    # Labels by chance: what was fitted to them would tell them apart all the same.
    rng = np.random.default_rng(1)
    rows = [[(bool(b), rng.random(3)) for b in rng.permutation([1, 0, 0])] for _ in range(20)]
    held = [listed(row, f"q{i}") for i, row in enumerate(rows)]
    columns = np.concatenate([one.rows for one in held])
    found = gold_signals.fitted(columns, held)
    labels = np.array([label for one in held for label in one.labels], dtype=bool)
    wins = (found[labels][:, None] > found[~labels][None]).mean()
    assert 0.2 < wins < 0.7


def test_lists_are_of_the_first_questions_as_long_as_the_cells_have_them(world, workshop):
    workshop.dataset = lambda name, split: world

    def cell(k=10):
        asked = SimpleNamespace(dataset=WORLD, split="test", configured=SimpleNamespace(k=k))
        return SimpleNamespace(keys={"dataset": WORLD}, condition=asked)

    made = gold_signals.rank_cells([cell(), cell()], workshop, 2)
    assert list(made) == [WORLD]
    assert [one.question.id for one in made[WORLD]] == [q.id for q in world.questions[:2]]
    # No longer than the cell's own: the best ones, in their order.
    short = gold_signals.rank_cells([cell(k=3)], workshop, 2)[WORLD]
    for few, whole in zip(short, made[WORLD], strict=True):
        assert few.hits == whole.hits[:3]
        assert few.rows.shape == (3, 3)
