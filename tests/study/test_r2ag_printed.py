"""R²AG's printed values and claims: complete, well formed, and what the claims say of them.

A slip in typing breaks a count that the paper states, or one that follows from it: shares of
531 questions are multiples of 1/531, and two tables print the same cell.
"""

import csv
from decimal import Decimal
from itertools import product
from pathlib import Path

import pytest

import rag_repro

FOLDER = Path(rag_repro.__file__).parent / "study" / "papers" / "r2ag"
L7, L13, L8 = "llama2-7b", "llama2-13b", "llama3-8b"
LONG, CHAT, GPT4, QWEN = "longchat1.5-7b", "gpt-3.5-turbo", "gpt-4-turbo", "qwen1.5-0.5b"
NQ = ("nq10", "nq20", "nq30")
HOPS = ("hotpotqa", "musique", "2wikimultihopqa")
SETS = (*NQ, *HOPS)
ACC, F1 = "acc_line", "f1_line"
CELLS = {"table1": 114, "table2": 14, "table3": 18, "table4": 49, "fig5": 8, "latency": 1}
ALLOWED = {
    "method": {
        *("rag", "cot", "recomp", "crag", "long_llmlingua", "r2ag", "self_rag", "raft"),
        *("r2ag_raft", "no_relevance", "no_precedent", "no_neighbour", "no_qdm"),
    },
    "reader": {L7, L13, L8, LONG, CHAT, GPT4, QWEN, "qwen1.5-1.8b", "internlm2-1.8b"},
    "dataset": {*SETS, "dureader"},
    "language": {"English", "Chinese"},
    "metric": {
        *(ACC, F1, "rouge_l", "drop", "questions", "train", "test", "tokens", "gold"),
        *("passages", "map", "new_tokens", "latency"),
    },
}


def rows(table):
    with (FOLDER / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def value(table, **keys):
    found = [r for r in rows(table) if all(r[k] == v for k, v in keys.items())]
    assert len(found) == 1, (table, keys, len(found))
    return Decimal(found[0]["value"])


def foundation(dataset):
    return LONG if dataset in ("nq20", "nq30") else L7


def cell(method, dataset, metric=ACC, reader=None):
    """Table 1's value, of a row that reads with the foundation unless told otherwise."""
    who = reader or foundation(dataset)
    return value("table1", method=method, reader=who, dataset=dataset, metric=metric)


def gains(more, less, metric=ACC, sets=SETS):
    return [cell(more, d, metric) - cell(less, d, metric) for d in sets]


def numbers(text):
    return [Decimal(n) for n in text.split()]


@pytest.mark.parametrize("table", CELLS)
def test_complete_and_well_formed(table):
    got = rows(table)
    assert len(got) == CELLS[table]
    keys = [k for k in got[0] if k not in ("value", "note")]
    assert len({tuple(r[k] for k in keys) for r in got}) == len(got), "a key occurs twice"
    for row in got:
        assert all(row[k] in ALLOWED[k] for k in keys), row
        number = Decimal(row["value"])
        if row["metric"] in (ACC, F1, "rouge_l", "map"):
            assert 0 < number < 1, row
            assert len(row["value"].partition(".")[2]) == 4, row
        elif row["metric"] == "drop":
            assert len(row["value"].partition(".")[2]) == 2, row


def test_the_twelve_dashes_of_table_1():
    have = {(r["method"], r["reader"], r["dataset"], r["metric"]) for r in rows("table1")}
    columns = [*((d, ACC) for d in NQ), *product(HOPS, (ACC, F1))]
    per_row = {}
    for method, reader, dataset, metric in have:
        assert (dataset, metric) in columns
        # A plain reader's row is its own; a method's goes over both foundations.
        key = reader if method == "rag" else method
        per_row.setdefault(key, set()).add((dataset, metric))
    assert len(per_row) == 14
    missing = {key: sorted(set(columns) - got) for key, got in per_row.items() if len(got) < 9}
    late, wiki = [("nq20", ACC), ("nq30", ACC)], [("2wikimultihopqa", m) for m in (ACC, F1)]
    assert missing == {
        **dict.fromkeys((L7, L13, "long_llmlingua", "self_rag"), late),
        **dict.fromkeys((CHAT, GPT4), wiki),
    }
    assert sum(map(len, missing.values())) == 12


def test_suspect_cells_carry_a_note_and_stay_as_printed():
    noted = {(t, r["value"]) for t in CELLS for r in rows(t) if r["note"]}
    for suspect in (
        *(("table1", "0.6886"), ("table1", "0.7514"), ("table1", "0.0169")),
        *(("table3", "0.7043"), ("table4", "2.36")),
    ):
        assert suspect in noted
    same = [r for r in rows("table1") if r["value"] == "0.7514" and r["note"]]
    assert {(r["reader"], r["dataset"]) for r in same} == {(GPT4, "nq20"), (GPT4, "nq30")}
    assert all(r["note"] for r in rows("table2") if r["metric"] == "rouge_l")


def shares_of(n, dataset):
    """Values of a table 1 column that are no share of n questions, to the printed digit."""
    found = [r for r in rows("table1") if r["dataset"] == dataset and r["metric"] == ACC]
    return found, [
        r
        for r in found
        if abs(round(Decimal(r["value"]) * n) / Decimal(n) - Decimal(r["value"])) > Decimal("5e-5")
    ]


def test_nq_is_in_shares_of_531_questions_but_for_one_cell():
    odd = [r for d in NQ for r in shares_of(531, d)[1]]
    assert [(r["reader"], r["dataset"]) for r in odd] == [(CHAT, "nq10")]
    assert float(Decimal("0.6886") * 531) == pytest.approx(365.65, abs=0.005)
    for row in rows("table3"):
        count = Decimal(row["value"]) * 531
        assert row["metric"] == "drop" or abs(count - round(count)) < Decimal("0.03"), row


def test_musique_and_some_of_hotpotqa_are_no_shares_of_their_test_sets():
    assert tuple(map(len, shares_of(2417, "musique"))) == (14, 11)
    assert tuple(map(len, shares_of(7405, "hotpotqa"))) == (14, 4)


# ------------------------------------------------------------- what claims say of table 1


def test_r2ag_against_plain_rag():
    assert gains("r2ag", "rag") == numbers("0.3032 0.1280 0.1506 0.4045 0.1318 0.2137")
    assert gains("r2ag", "rag", F1, HOPS) == numbers("0.2753 0.1446 0.2818")
    factors = [float(cell("r2ag", d) / cell("rag", d)) for d in HOPS]
    assert [round(f, 1) for f in factors] == [2.5, 3.4, 2.8]
    factors = [float(cell("r2ag", d, F1) / cell("rag", d, F1)) for d in HOPS]
    assert [round(f, 1) for f in factors] == [4.2, 7.0, 5.4]


@pytest.mark.parametrize(
    ("more", "less", "metric", "sets", "wanted"),
    [
        ("r2ag", "rag", ACC, SETS, 22.2),
        ("r2ag", "rag", F1, HOPS, 23.4),
        ("r2ag", "rag", ACC, HOPS, 25.0),
        ("r2ag", "cot", ACC, SETS, 19.7),
        ("r2ag", "recomp", ACC, SETS, 37.2),
        ("r2ag", "crag", ACC, SETS, 22.7),
        ("r2ag", "long_llmlingua", ACC, ("nq10", *HOPS), 16.7),
        ("crag", "rag", ACC, NQ, 6.3),
        ("rag", "crag", ACC, HOPS, 7.2),
        ("raft", "rag", ACC, SETS, 35.1),
        ("raft", "rag", F1, HOPS, 26.1),
        ("raft", "r2ag", ACC, SETS, 12.9),
        ("r2ag_raft", "raft", ACC, SETS, 0.84),
        ("r2ag_raft", "raft", F1, HOPS, 4.66),
    ],
)
def test_gains_that_deltas_are_halves_of(more, less, metric, sets, wanted):
    got = [float(100 * g) for g in gains(more, less, metric, sets)]
    assert sum(got) / len(got) == pytest.approx(wanted, abs=0.06)


def test_r2ag_over_other_readers():
    def won(reader):
        own = [r for r in rows("table1") if r["reader"] == reader and r["method"] == "rag"]
        have = {(r["dataset"], r["metric"]) for r in own}
        pairs = [c for c in [*product(SETS, (ACC,)), *product(HOPS, (F1,))] if c in have]
        lost = [p for p in pairs if cell("r2ag", *p) <= cell("rag", *p, reader=reader)]
        return len(pairs), lost

    far = [("musique", ACC), ("2wikimultihopqa", ACC)]
    assert won(LONG) == (9, far)
    assert won(L8) == (9, far)
    assert won(L13) == (7, [("nq10", ACC)])
    total, lost = won(GPT4)
    assert (total, len(lost)) == (7, 7)
    over_chat = [cell("r2ag", d) - cell("rag", d, reader=CHAT) for d in (*NQ, "hotpotqa")]
    assert over_chat == numbers("0.0044 0.0301 0.0357 0.0118")
    f1 = cell("r2ag", "hotpotqa", F1) - cell("rag", "hotpotqa", F1, reader=CHAT)
    assert f1 == Decimal("-0.2913")
    over_13 = [
        cell("r2ag", d, m) - cell("rag", d, m, reader=L13)
        for d, m in (("nq10", ACC), *product(HOPS, (ACC,)))
    ]
    assert float(sum(over_13)) * 100 / 4 == pytest.approx(10.06, abs=0.01)
    over_13 = [cell("r2ag", d, F1) - cell("rag", d, F1, reader=L13) for d in HOPS]
    assert float(sum(over_13)) * 100 / 3 == pytest.approx(21.33, abs=0.01)


def test_gpt4_leads_five_of_seven_columns_among_frozen_readers():
    frozen = [r for r in rows("table1") if r["method"] not in ("self_rag", "raft", "r2ag_raft")]
    columns = [
        (d, m) for d, m in [*product(SETS, (ACC,)), *product(HOPS, (F1,))] if d != "2wikimultihopqa"
    ]
    assert len(columns) == 7
    best = {
        c: max(
            (r for r in frozen if (r["dataset"], r["metric"]) == c),
            key=lambda r: Decimal(r["value"]),
        )["reader"]
        for c in columns
    }
    assert [c for c, who in best.items() if who != GPT4] == [("hotpotqa", F1), ("musique", F1)]
    assert {best[c] for c in (("hotpotqa", F1), ("musique", F1))} == {CHAT}


def test_r2ag_against_other_enhancements():
    cells = [*product(SETS, (ACC,)), *product(HOPS, (F1,))]
    compared = [
        (m, *c)
        for m, c in product(("cot", "recomp", "crag", "long_llmlingua"), cells)
        if m != "long_llmlingua" or c[0] not in ("nq20", "nq30")
    ]
    lost = [c for c in compared if cell("r2ag", *c[1:]) <= cell(*c)]
    assert (len(compared), lost) == (34, [("long_llmlingua", "musique", ACC)])
    compressed = [c for c in compared if c[0] in ("recomp", "long_llmlingua")]
    assert (len(compressed), sum(c in lost for c in compressed)) == (16, 1)
    assert gains("crag", "rag") == numbers("0.0076 0.0659 0.1149 -0.1436 -0.0284 -0.0437")
    assert all(g < 0 for g in gains("crag", "rag", F1, HOPS))
    assert round(cell("recomp", "nq10") * 531) == 9


def test_tuned_readers():
    up = [*gains("raft", "rag"), *gains("raft", "rag", F1, HOPS)]
    acc, f1 = gains("raft", "rag"), gains("raft", "rag", F1, HOPS)
    assert all(g > 0 for g in up)
    assert [round(float(x), 2) for x in (min(acc), max(acc))] == [0.20, 0.64]  # 0.1983 on MuSiQue
    assert [round(float(x), 2) for x in (min(f1), max(f1))] == [0.13, 0.42]
    both = [*gains("r2ag_raft", "raft"), *gains("r2ag_raft", "raft", F1, HOPS)]
    wanted = "0.0678 0.0019 0.0151 0.0002 -0.0234 -0.0111 -0.0116 0.0031 0.1482"
    assert both == numbers(wanted)
    in_2 = {
        m: [
            value("table2", method=x, metric=m, reader=QWEN)
            for x in ("rag", "r2ag", "raft", "r2ag_raft")
        ]
        for m in (F1, "rouge_l")
    }
    both += [values[3] - values[2] for values in in_2.values()]
    assert (sum(g > 0 for g in both), sum(g < 0 for g in both)) == (7, 4)
    assert [v[1] - v[0] for v in in_2.values()] == [Decimal("0.0115"), Decimal("0.0007")]
    assert [round(float(v[2] - v[0]), 3) for v in in_2.values()] == [0.103, 0.108]
    larger = value("table2", reader="qwen1.5-1.8b", metric=F1)
    assert in_2[F1][1] - larger == Decimal("-0.0023")
    frozen = gains("raft", "r2ag")
    assert [round(float(x), 3) for x in (min(frozen), max(frozen))] == [0.058, 0.421]
    assert gains("raft", "r2ag", F1, HOPS)[:2] == [Decimal("-0.0433"), Decimal("-0.0185")]
    below = [*gains("r2ag", "raft"), *gains("r2ag", "raft", F1, HOPS)]
    assert sum(g < 0 for g in below) == 7


def test_f1_by_acc_of_the_closed_readers():
    told = {
        who: float(cell(m, "hotpotqa", F1, r) / cell(m, "hotpotqa", ACC, r))
        for who, m, r in (
            ("chat", "rag", CHAT),
            ("gpt4", "rag", GPT4),
            ("ours", "r2ag", L7),
            ("13b", "rag", L13),
        )
    }
    assert {k: round(v, 2) for k, v in told.items()} == {
        "chat": 0.99,
        "gpt4": 0.79,
        "ours": 0.54,
        "13b": 0.26,
    }


# --------------------------------------------------------------- other tables


def test_table_3_repeats_table_1_and_its_drops_are_relative():
    counts = {}
    for d in ("nq10", "nq20"):
        whole = value("table3", method="r2ag", dataset=d, metric=ACC)
        assert whole == cell("r2ag", d)
        counts[d] = [round(whole * 531)]
        for part in ("no_relevance", "no_precedent", "no_neighbour", "no_qdm"):
            left = value("table3", method=part, dataset=d, metric=ACC)
            drop = value("table3", method=part, dataset=d, metric="drop")
            exact = [
                Decimal(100 * (a - b)) / a
                for a, b in ((whole, left), (round(whole * 531), round(left * 531)))
            ]
            assert any(abs(drop - e) <= Decimal("0.0051") for e in exact), (part, d, exact)
            counts[d].append(round(left * 531))
    assert counts == {"nq10": [368, 359, 357, 332, 342], "nq20": [375, 361, 368, 364, 374]}


def test_halves_of_table_3s_mean_drops():
    def mean(*methods):
        found = [
            value("table3", method="r2ag", dataset=d, metric=ACC)
            - value("table3", method=m, dataset=d, metric=ACC)
            for m, d in product(methods, ("nq10", "nq20"))
        ]
        return 100 * float(sum(found)) / len(found)

    features = ("no_relevance", "no_precedent", "no_neighbour")
    assert [mean(m) / 2 for m in features] == pytest.approx([1.1, 0.85, 2.2], abs=0.02)
    assert mean("no_qdm") / 2 == pytest.approx(1.3, abs=0.04)
    assert mean(*features) / 2 == pytest.approx(1.4, abs=0.02)


def test_table_4():
    def told(metric):
        return {r["dataset"]: Decimal(r["value"]) for r in rows("table4") if r["metric"] == metric}

    questions, train, test = told("questions"), told("train"), told("test")
    assert len(questions) == 7
    assert all(questions[d] == train[d] + test[d] for d in questions)
    assert {d for d in NQ if (train[d], test[d]) == (2124, 531)} == set(NQ)
    assert [told("passages")[d] for d in NQ] == [10, 20, 30]
    assert [told("tokens")[d] for d in NQ] == [2000, 4000, 6000]
    ranked = told("map")
    assert ranked["nq10"] > ranked["nq20"] > ranked["nq30"]
    assert min(ranked, key=ranked.get) == "musique"
    assert {r["dataset"] for r in rows("table4") if r["language"] == "Chinese"} == {"dureader"}


def test_answers_grow_by_twelve_tokens_with_the_larger_reader():
    short, long = (value("fig5", reader=r, metric="new_tokens") for r in (L7, L13))
    assert (short, long) == (Decimal("37.44"), Decimal("49.71"))


# ------------------------------------------------------------- a second reading, row by row

READ = f"""
{L7}           3898    -    - 2630 0852 0546 0241 1205 0634
{LONG}         6045 5782 5198 5424 3231 2808 1276 3882 2253
{L8}           5141 4991 5311 5901 2056 2427 0891 4723 1952
{L13}          7684    -    - 3788 1000 0909 0446 2405 0898
{CHAT}         6886 6761 6347 6557 6518 3376 3321    -    -
{GPT4}         7759 7514 7514 7673 6026 4853 3270    -    -
cot            4482 6026 5631 2365 1028 0626 0412 1627 0969
recomp         0169 2222 1977 2388 0265 0830 0156 2666 0329
crag           3974 6441 6347 1194 0360 0262 0047 0768 0422
long_llmlingua 3635    -    - 4174 1178 1939 0477 2374 0888
r2ag           6930 7062 6704 6675 3605 1864 1687 3342 3452
self_rag       1883    -    - 2475 1236 0701 0378 2611 1389
raft           7514 8041 7307 7349 3172 2529 1502 7555 4869
r2ag_raft      8192 8060 7458 7351 3056 2295 1533 7444 6351
"""
READ_2 = f"""
rag {LONG} 0914 1181
rag {QWEN} 1395 1656
rag qwen1.5-1.8b 1533 1570
rag internlm2-1.8b 1330 1391
r2ag {QWEN} 1510 1663
raft {QWEN} 2423 2740
r2ag_raft {QWEN} 2507 2734
"""
READ_4 = """
nq10 2655 2124 531 2000 1 10 0.9602
nq20 2655 2124 531 4000 1 20 0.9287
nq30 2655 2124 531 6000 1 30 0.9215
hotpotqa 97852 90447 7405 2000 2.36 10 0.9138
musique 22355 19938 2417 3000 2.37 20 0.5726
2wikimultihopqa 180030 167454 12576 2000 2.42 10 0.9637
dureader 200 160 40 16000 1.82 20 0.7169
"""


def read(text):
    return [line.split() for line in text.strip().splitlines()]


def test_table_1_read_again():
    columns = [*((d, ACC) for d in NQ), *product(HOPS, (ACC, F1))]
    wanted = {
        (name, *column): f"0.{number}"
        for name, *line in read(READ)
        for column, number in zip(columns, line, strict=True)
        if number != "-"
    }
    got = {
        (r["reader"] if r["method"] == "rag" else r["method"], r["dataset"], r["metric"]): r[
            "value"
        ]
        for r in rows("table1")
    }
    assert got == wanted


def test_tables_2_and_4_and_the_latency_read_again():
    wanted = [
        (*name, metric, f"0.{number}")
        for *name, first, second in read(READ_2)
        for metric, number in ((F1, first), ("rouge_l", second))
    ]
    got = [(r["method"], r["reader"], r["metric"], r["value"]) for r in rows("table2")]
    assert got == wanted
    names = ("questions", "train", "test", "tokens", "gold", "passages", "map")
    wanted = [(d, *pair) for d, *line in read(READ_4) for pair in zip(names, line, strict=True)]
    assert [(r["dataset"], r["metric"], r["value"]) for r in rows("table4")] == wanted
    assert value("latency", method="r2ag") == Decimal("0.8")
    assert value("table3", method="no_relevance", dataset="nq20", metric="drop") == Decimal("3.73")
