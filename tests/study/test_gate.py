"""Answers count only where the reader can read, and only of the questions a claim is about."""

from __future__ import annotations

import pytest

from rag_repro.show import exhibit_rows, ledger, readers
from rag_repro.study import gate, papers, records
from rag_repro.study.judge import judge
from rag_repro.study.papers import StudyError
from rag_repro.study.records import open_record
from rag_repro.study.scores import Results

PAPER = """
title: A paper on answers
short: Answers
cite: answers2026
gate: {exhibit: readers, given: {method: gold}, bare: {method: closed}}
exhibits:
  readers:
    title: Readers
    place: own
    own: true
    metrics: [acc]
    methods:
      gold: {label: Gold, run: gold_passages, retriever: bm25}
      closed: {label: Closed, run: no_retrieval}
    grids:
      - {tier: public, datasets: [hotpotqa, musique], methods: [gold, closed], reader: smollm2-135m}
  table1:
    title: Answers
    place: table 1
    metrics: [acc, recall]
    methods:
      sm: {label: SM, run: single_step, retriever: bm25}
      qdc: {label: QDC, run: qdc, retriever: bm25}
    grids:
      - tier: public
        datasets: [hotpotqa, musique]
        methods: [sm, qdc]
        settings: {k: [4]}
        reader: smollm2-135m
"""
CLAIMS = """
- id: answers.c01
  place: abstract
  claim: Better answers.
  exhibit: answers.table1
  paper_numbers: ""
  support: "none"
  support_note: ""
  test: paired
  n_needed: null
  scale: "yes"
  contrasts: [{contrast}]
"""
GAIN = "{metric: acc, more: {method: qdc}, less: {method: sm}, delta: 2.0}"
ABLE, UNABLE = {"gold": 50, "closed": 20}, {"gold": 30, "closed": 20}  # of 100 right


def read(tmp_path, contrast=GAIN, text=PAPER):
    folder = tmp_path / "answers"
    folder.mkdir(exist_ok=True)
    (folder / "paper.yaml").write_text(text)
    (folder / "claims.yaml").write_text(CLAIMS.replace("{contrast}", contrast))
    return papers.read(folder)


def fill(root, paper, shown, right, n=100, kind=lambda i: "bridge", judged=(), **more):
    """A record of each cell: the first `right(dataset, method)` of n questions are right."""
    for cell in paper.exhibits[shown].cells():
        dataset, method = cell.keys["dataset"], cell.keys["method"]
        with open_record(root, cell.condition, {}) as record:
            for i in range(n):
                scores = {"acc": float(i < right(dataset, method))}
                scores |= {name: float(of(method, i)) for name, of in more.items()}
                name = f"q{i}-{cell.keys['dataset']}"
                line = {"id": name, "kind": kind(i), "cluster": name, "hits": []}
                record.append({**line, "scores": scores} | ({"judged": judged} if judged else {}))


def verdict(tmp_path, able, contrast=GAIN, right=None, **more):
    """able: data set -> right answers of the gate's cells; {} where nobody ran them."""
    paper, root = read(tmp_path, contrast), tmp_path / "records"
    if able:
        fill(root, paper, "readers", lambda d, m: able[d][m])
    fill(root, paper, "table1", right or (lambda d, m: {"sm": 30, "qdc": 60}[m]), **more)
    [judged] = judge(paper, "public", Results(root))
    return judged.verdict


def test_a_reader_that_can_read_gets_a_verdict_on_both_data_sets(tmp_path):
    found = verdict(tmp_path, {"hotpotqa": ABLE, "musique": ABLE})
    assert (found.word, found.interval.n) == ("reproduced", 200)
    assert "left out" not in found.reason


def test_a_data_set_on_which_it_cannot_leaves_the_pool_and_that_is_said(tmp_path):
    found = verdict(tmp_path, {"hotpotqa": ABLE, "musique": UNABLE})
    assert (found.word, found.interval.n) == ("reproduced", 100)
    left_out = "left out: MuSiQue (reader too weak)"
    assert found.reason.endswith(left_out)


def test_a_table_says_where_the_reader_is_too_weak(tmp_path):
    paper, root = read(tmp_path), tmp_path / "records"
    gate = {"hotpotqa": ABLE, "musique": UNABLE}
    fill(root, paper, "readers", lambda d, m: gate[d][m])
    fill(root, paper, "table1", lambda d, m: 40, recall=lambda m, i: 1)
    results = Results(root)

    def weak(key, *metrics):
        exhibit = paper.exhibits[key]
        made = exhibit_rows.recipe_rows(paper, exhibit, results, "public")
        return readers.weak(paper, exhibit, [row for row in made if row.metric in metrics], results)

    assert weak("table1", "acc", "recall") == ["MuSiQue"]
    assert weak("table1", "recall") == []  # found, whoever reads
    assert weak("readers", "acc") == []  # the gate's own table says it in a column


@pytest.mark.parametrize(("rule", "word"), [("", "reproduced"), ("rule: each, ", "inconclusive")])
def test_what_would_not_count_need_not_be_run(tmp_path, rule, word):
    contrast = GAIN.replace("delta", f"{rule}delta")
    paper, root = read(tmp_path, contrast), tmp_path / "records"
    gate = {"hotpotqa": ABLE, "musique": UNABLE}
    fill(root, paper, "readers", lambda d, m: gate[d][m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    for cell in paper.exhibits["table1"].cells():
        if cell.keys["dataset"] == "musique":
            records.find(root, cell.condition).unlink()
    [judged] = judge(paper, "public", Results(root))
    assert (judged.verdict.word, judged.verdict.interval.n) == (word, 100)
    assert "MuSiQue" in judged.verdict.reason


def test_what_is_not_run_where_it_would_count_is_said(tmp_path):
    paper, root = read(tmp_path), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    [judged] = judge(paper, "public", Results(root))
    assert (judged.verdict.word, judged.verdict.reason) == (
        "not run",
        "no records of HotpotQA, QDC, k = 4, reader = smollm2-135m",
    )


def test_where_it_cannot_read_anywhere_there_is_no_verdict(tmp_path):
    found = verdict(tmp_path, {"hotpotqa": UNABLE, "musique": UNABLE})
    assert found.word == "reader too weak"
    assert (
        "smollm2-135m: gold passages add 10.0 [4.9, 16.1] points of accuracy, 15 are needed, and a "
        "lower end above 5" in found.reason
    )


def test_of_a_claim_about_each_cell_the_weak_one_stays_open(tmp_path):
    each = GAIN.replace("delta", "rule: each, delta")
    found = verdict(tmp_path, {"hotpotqa": ABLE, "musique": UNABLE}, each)
    assert found.word == "inconclusive"
    assert "open: MuSiQue" in found.reason


def test_where_it_is_whether_passages_help_that_is_asked_the_gate_is_not(tmp_path):
    asked = GAIN.replace("delta", "gated: false, delta")
    assert verdict(tmp_path, {"hotpotqa": UNABLE, "musique": UNABLE}, asked).word == "reproduced"


def test_but_a_reader_that_answers_nothing_with_gold_passages_says_nothing_of_passages(tmp_path):
    asked = GAIN.replace("delta", "gated: false, delta")
    floor = {"gold": 14, "closed": 14}
    found = verdict(tmp_path, {"hotpotqa": ABLE, "musique": floor}, asked)
    assert (found.word, found.interval.n) == ("reproduced", 100)
    assert "left out: MuSiQue (reader too weak)" in found.reason


def test_a_reader_that_was_not_tried_gets_none_with_the_command(tmp_path):
    found = verdict(tmp_path, {})
    assert found.word == "not run"
    assert found.reason == (
        "whether smollm2-135m can read hotpotqa is not tried: rag-repro run answers.readers"
    )


@pytest.mark.parametrize(
    ("both", "other", "word"),
    [
        ("", UNABLE, "reproduced"),
        (", both_read: true", UNABLE, "reader too weak"),
        (", both_read: true", ABLE, "reproduced"),
        (", both_read: true", None, "not run"),
    ],
)
def test_the_other_sides_reader_must_read_only_where_it_is_asked_to(tmp_path, both, other, word):
    """The first can read; the other has a reader of its own."""
    theirs = "tier: public, datasets: [hotpotqa], reader: testbed-reader"
    one = "methods: [gold, closed], reader: smollm2-135m}\n"
    assert one in PAPER
    text = PAPER.replace(one, f"{one}      - {{{theirs}, methods: [gold, closed]}}\n")
    text += f"      - {{{theirs}, methods: [sm], settings: {{k: [4]}}}}\n"
    contrast = (
        "{metric: acc, more: {method: qdc, reader: smollm2-135m}, "
        f"less: {{method: sm, reader: testbed-reader}}, delta: 2.0{both}}}"
    )
    paper, root = read(tmp_path, contrast, text), tmp_path / "records"
    for cell in [c for key in ("readers", "table1") for c in paper.exhibits[key].cells()]:
        method = cell.keys["method"]
        able = other if cell.condition.reader == "testbed-reader" else ABLE
        if cell.exhibit.endswith("readers") and able is None:
            continue
        right = {"sm": 30, "qdc": 60, **(able or {})}[method]
        with open_record(root, cell.condition, {}) as record:
            for i in range(100):
                name = f"q{i}-{cell.keys['dataset']}"
                line = {"id": name, "kind": "bridge", "cluster": name, "hits": []}
                record.append({**line, "scores": {"acc": float(i < right)}})
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == word
    if word == "not run":
        assert "whether testbed-reader can read hotpotqa is not tried" in judged.verdict.reason


def test_what_is_found_counts_whether_or_not_the_reader_can_read(tmp_path):
    recall = GAIN.replace("acc", "recall")
    found = verdict(tmp_path, {}, recall, recall=lambda method, i: method == "qdc" or i % 2)
    assert (found.word, found.interval.n) == ("reproduced", 200)


def test_the_gate_counts_only_questions_that_both_sides_have(tmp_path):
    paper, root = read(tmp_path), tmp_path / "records"
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    for cell in paper.exhibits["readers"].cells():
        part = range(40) if cell.keys["method"] == "gold" else range(100)
        with open_record(root, cell.condition, {}) as record:
            for i in part:  # of the common 40 gold gets 20 right, bare 20: no gain
                name = f"q{i}-{cell.keys['dataset']}"
                line = {"id": name, "cluster": name, "hits": []}
                record.append({**line, "scores": {"acc": float(i < 20)}})
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == "reader too weak"
    assert "add 0.0 [" in judged.verdict.reason


def test_only_questions_where_another_metric_moved(tmp_path):
    """qdc finds more in the first 50 questions, where it is right; less in 20, as much in 30."""
    able = {"hotpotqa": ABLE, "musique": ABLE}

    def recall(method, i):
        return 0.5 if method == "sm" else 1.0 if i < 50 else 0.0 if i < 70 else 0.5

    found = {}
    for change in ("higher", "lower", "same"):
        among = GAIN.replace("delta", f"among: {{recall: {change}}}, delta")
        folder = tmp_path / change
        folder.mkdir()
        found[change] = verdict(folder, able, among, recall=recall).interval
    # right are the first 30 of sm and the first 60 of qdc
    assert [i.n for i in found.values()] == [100, 40, 60]
    gains = [round(i.estimate, 6) for i in found.values()]
    assert gains == [40.0, 50.0, 0.0]


def test_questions_that_one_side_lacks_moved_nowhere(tmp_path):
    among = GAIN.replace("delta", "among: {recall: same}, delta")
    paper, root = read(tmp_path, among), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    for cell in paper.exhibits["table1"].cells():
        n = {"sm": 60, "qdc": 100}[cell.keys["method"]]
        with open_record(root, cell.condition, {}) as record:
            for i in range(n):
                name = f"q{i}-{cell.keys['dataset']}"
                line = {"id": name, "kind": "bridge", "cluster": name, "hits": []}
                record.append({**line, "scores": {"acc": 1.0, "recall": 1.0}})
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.interval.n == 120


def test_without_such_questions_it_says_so(tmp_path):
    among = GAIN.replace("delta", "among: {recall: lower}, delta")
    able = {"hotpotqa": ABLE, "musique": ABLE}
    found = verdict(tmp_path, able, among, recall=lambda method, i: 1.0)
    assert (found.word, found.reason) == ("not judged", "no question is with recall lower")


def test_a_tier_without_a_condition_names_those_that_have_one(tmp_path):
    [judged] = judge(read(tmp_path), "testbed", Results(tmp_path / "records"))
    assert judged.verdict.reason == "no condition for it at tier testbed, only at public"


def test_a_claim_that_no_record_can_decide_says_why(tmp_path, monkeypatch):
    why = "  no_contrast: arithmetic on printed values\n  contrasts: [{contrast}]"
    changed = CLAIMS.replace("  contrasts: [{contrast}]", why)
    monkeypatch.setitem(globals(), "CLAIMS", changed)
    [judged] = judge(read(tmp_path, ""), "public", Results(tmp_path / "records"))
    assert (judged.verdict.word, judged.verdict.reason) == (
        "not judged",
        "arithmetic on printed values",
    )
    with pytest.raises(StudyError, match="`no_contrast` cannot say why there is none"):
        read(tmp_path, GAIN)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("exhibit: readers,", "exhibit: reader,", "gate: exhibit 'reader' is unknown, did you"),
        ("{method: gold}", "{method: gild}", "gate: method 'gild' is unknown, did you mean 'gold'"),
        ("{method: gold}", "{method: gold, k: 3}", "gate: key 'k' is unknown"),
        ("bare:", "bar:", "gate: unknown key 'bar', did you mean 'bare'"),
        ("gate: {", "gates: {", "unknown key 'gates', did you mean 'gate'"),
        ("methods: [gold, closed], r", "methods: [gold], r", "gate: no condition of answers"),
    ],
)
def test_a_gate_that_cannot_be_is_refused(tmp_path, old, new, message):
    assert old in PAPER
    with pytest.raises(StudyError, match=f"answers/paper.yaml.*{message}"):
        read(tmp_path, text=PAPER.replace(old, new))


def test_a_claim_about_answers_needs_a_gate(tmp_path):
    bare = "\n".join(line for line in PAPER.splitlines() if not line.startswith("gate"))
    with pytest.raises(StudyError, match=r"c01: it is about answers \(acc\), so answers needs a"):
        read(tmp_path, text=bare)
    read(tmp_path, GAIN.replace("acc", "recall"), text=bare)


@pytest.mark.parametrize(
    ("contrast", "message"),
    [
        (GAIN.replace("delta", "among: {recall: up}, delta"), "'among' cannot be {'recall': 'up'}"),
        (GAIN.replace("delta", "among: {recal: same}, delta"), "metric 'recal' is unknown"),
        (
            "{metric: acc, more: {method: sm}, target: 5, delta: 1, among: {recall: same}}",
            "among compares two sides",
        ),
        (
            "{metric: acc, more: {method: sm}, target: 5, delta: 1, both_read: true}",
            "both_read is about a second reader",
        ),
    ],
)
def test_questions_that_cannot_be_picked_are_refused(tmp_path, contrast, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, contrast)


# --------------------------------------------------------- what else is trained: proofs

PROOFS = (
    "proofs: [{setting: judge, exhibit: taken, metrics: [recall, f1], against: precision, "
    "serves: {nq: [hotpotqa], popqa: [hotpotqa, musique]}}]\n"
)
TAKEN = """  taken:
    title: What the judge takes
    place: own
    own: true
    metrics: [recall, f1, precision]
    methods:
      own: {label: Taken, run: erm4, retriever: bm25, settings: {filter: nli, rewrite: none, k: 4}}
    grids:
      - {tier: public, datasets: [nq, popqa], methods: [own], fixed: {judge: gemma3-270m}, n: 50}
"""
FILTERED = "run: erm4, retriever: bm25, settings: {filter: nli, rewrite: none, judge: "


def read_proven(tmp_path, judge_of="gemma3-270m", proofs=PROOFS):
    text = PAPER.replace("run: qdc, retriever: bm25", FILTERED + judge_of + "}")
    return read(tmp_path, text=text.replace("exhibits:\n", proofs + "exhibits:\n") + TAKEN)


def proven(
    tmp_path, shares, judge_of="gemma3-270m", kind=lambda i: "bridge", n=50, judged=(), **how
):
    """The claim's verdict where the judge's cells have these shares of 100 by metric, `None`s where
    no question has it; shares None: nobody tried it. kind: of a question of these cells; n, judged:
    how many they have, and what of each was judged."""
    paper, root = read_proven(tmp_path, judge_of, **how), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    if shares is not None:
        has = {name: lambda m, i, share=share: i % 50 < share / 2 for name, share in shares.items()}
        fill(root, paper, "taken", lambda d, m: 0, n=n, kind=kind, judged=judged, **has)
    [judged] = judge(paper, "public", Results(root))
    return judged.verdict


def test_what_a_part_gains_on_kinds_that_decide_nothing_proves_nothing_of_answers(tmp_path):
    """It gains on the first twenty of each fifty: guessed ones here, bridges there."""
    all_alike = PROOFS.partition(", serves")[0] + "}]\n"
    shares = {"recall": 40, "precision": 0}
    found = proven(tmp_path, shares, proofs=all_alike)
    assert found.word == "reproduced"
    (tmp_path / "guessed").mkdir()
    guessed = {"kind": lambda i: "comparison" if i % 50 < 20 else "bridge", "proofs": all_alike}
    found = proven(tmp_path / "guessed", shares, n=100, **guessed)
    assert found.word == "not judged"
    assert "recall above precision: 0.0 [" in found.reason
    assert found.reason.endswith("on 120 held-out questions")


def test_a_hundred_questions_are_needed_of_each_metric_and_of_kinds_that_decide(tmp_path):
    """Of 2 times 50 questions 98 are bridges; all of them are enough, and so are 98 with pairs."""
    all_alike = PROOFS.partition(", serves")[0] + "}]\n"
    shares = {"recall": 60, "precision": 20}
    few = {"kind": lambda i: "comparison" if i == 49 else "bridge"}
    found = proven(tmp_path, shares, proofs=all_alike, **few)
    assert found.word == "not judged"
    assert found.reason.endswith(
        "whether gemma3-270m does its work is not known: answers.taken, nq and popqa, recall "
        "is told by 98 held-out questions of kinds that decide, fewer than 100"
    )
    for name, judged, word in (("two", 2, "reproduced"), ("one", 1, "not judged")):
        (tmp_path / name).mkdir()
        each = all_alike.replace("}]", ", examples: judged}]")
        few |= {"proofs": each, "judged": [["d", "e", 0.5, 1]] * judged}
        assert proven(tmp_path / name, shares, **few).word == word


def test_a_filter_that_does_its_work_counts_on_questions_like_those_it_was_tried_on(tmp_path):
    """MuSiQue's are like PopQA's alone, which are 50; then like none."""
    found = proven(tmp_path, {"recall": 60, "precision": 20})
    assert (found.word, found.reason) == (
        "not run",
        "whether gemma3-270m does its work is tried on 50 of 100 held-out questions: "
        "rag-repro run answers.taken",
    )
    none = PROOFS.replace("popqa: [hotpotqa, musique]", "popqa: [hotpotqa]")
    (tmp_path / "none").mkdir()
    found = proven(tmp_path / "none", {"recall": 60, "precision": 20}, proofs=none)
    assert (found.word, found.interval.n) == ("reproduced", 100)
    assert found.reason.endswith("left out: MuSiQue (not judged)")


@pytest.mark.parametrize(
    ("recall", "precision", "told"),
    [(100, 100, "0.0 [-7.1, 7.1]"), (0, 0, "0.0"), (20, 60, "-40.0"), (52, 50, "2.0 [-")],
)
def test_one_that_takes_all_or_none_says_nothing_of_a_claim(tmp_path, recall, precision, told):
    all_alike = PROOFS.partition(", serves")[0] + "}]\n"
    found = proven(tmp_path, {"recall": recall, "precision": precision}, proofs=all_alike)
    assert (found.word, found.interval) == ("not judged", None)
    assert found.reason.startswith(
        "both parts: gemma3-270m is not seen to do its work: answers.taken, nq and popqa, "
        f"recall above precision: {told}"
    )
    assert found.reason.endswith("on 100 held-out questions")


def test_what_it_does_not_do_on_some_passages_speaks_against_it(tmp_path):
    """Static-relevant passages are easy; dynamic-relevant ones are counted by themselves."""
    all_alike = PROOFS.partition(", serves")[0] + "}]\n"
    found = proven(tmp_path, {"recall": 60, "f1": 10, "precision": 20}, proofs=all_alike)
    assert found.word == "not judged"
    assert "nq and popqa, f1 above precision: -10.0 [" in found.reason


def test_a_proof_that_fails_comes_before_a_gate_that_nobody_ran(tmp_path):
    """More records would tell nothing."""
    paper, root = read_proven(tmp_path, proofs=PROOFS.partition(", serves")[0] + "}]\n"), tmp_path
    fill(
        root, paper, "taken", lambda d, m: 0, n=50, recall=lambda m, i: 0, precision=lambda m, i: 1
    )
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == "not judged"
    assert "gemma3-270m is not seen to do its work" in judged.verdict.reason


def test_one_that_nobody_tried_is_named_with_the_command(tmp_path):
    found = proven(tmp_path, None)
    assert found.word == "not run"
    assert (
        found.reason
        == "whether gemma3-270m does its work is tried on 0 of 100 held-out questions: "
        "rag-repro run answers.taken"
    )


def test_a_judge_that_is_only_prompted_is_not_held_back_and_one_that_was_trained_is(tmp_path):
    assert proven(tmp_path, {}, judge_of="smollm2-135m").word == "reproduced"
    (tmp_path / "trained").mkdir()
    found = proven(tmp_path / "trained", {}, judge_of="erm4-filter")
    assert (found.word, found.reason) == (
        "not judged",
        "both parts: erm4-filter is tried on no held-out questions: whether it does its work is "
        "not known",
    )


@pytest.mark.parametrize(
    ("metric", "each", "word"), [("recall", 1, "not judged"), ("passages", 10, "reproduced")]
)
def test_what_is_found_needs_a_proof_too_and_how_much_is_fed_none(tmp_path, metric, each, word):
    text = PAPER.replace("run: qdc, retriever: bm25", FILTERED + "erm4-filter}")
    paper, root = read(tmp_path, GAIN.replace("acc", metric), text=text), tmp_path / "records"
    more = {metric: lambda m, i: each * (i < {"sm": 30, "qdc": 60}[m])}
    fill(root, paper, "table1", lambda d, m: 0, **more)
    assert judge(paper, "public", Results(root))[0].verdict.word == word


def test_a_baseline_needs_a_proof_and_a_control_of_the_same_method_none(tmp_path):
    """Whatever is compared with a baseline that does not do its work wins."""
    paper = PAPER.replace("run: single_step, retriever: bm25", FILTERED + "erm4-filter}", 1)
    (tmp_path / "same").mkdir()
    same = FILTERED + "null}"
    for place, ours in ((tmp_path, "run: qdc, retriever: bm25"), (tmp_path / "same", same)):
        text = paper.replace("run: qdc, retriever: bm25", ours)
        found, root = read(place, text=text), place / "records"
        fill(root, found, "readers", lambda d, m: ABLE[m])
        fill(root, found, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
        word = judge(found, "public", Results(root))[0].verdict.word
        assert word == ("not judged" if place is tmp_path else "reproduced")


def test_a_part_can_be_held_to_what_an_untrained_one_scores(tmp_path):
    """As an AUC to 50: at 60 of 100 questions it is passed by 10."""
    half = PROOFS.partition(", f1")[0] + "], level: 45}]\n"
    assert proven(tmp_path, {"recall": 60}, proofs=half).word == "reproduced"
    (tmp_path / "less").mkdir()
    found = proven(tmp_path / "less", {"recall": 50}, proofs=half)
    assert (found.word, "recall above 45: 5.0 [" in found.reason) == ("not judged", True)


BEFORE = """
proofs:
  - &by
    {setting: reader, exhibit: before, metrics: [recall], more: {method: own}, less: {method: sm}}
  - {<<: *by, more: {method: gold}, less: {method: ones}, parts: [r2ag-mixed]}
"""
HELD_OUT = """  before:
    title: Before and after training
    place: own
    own: true
    metrics: [recall]
    methods:
      sm: {label: RAG, run: single_step, retriever: bm25}
      own: {label: R²AG, run: r2ag, retriever: minilm}
      gold: {label: Labels, run: r2ag, retriever: minilm, settings: {inputs: gold}}
      ones: {label: Ones, run: r2ag, retriever: minilm, settings: {inputs: constant}}
    grids:
      - &one {tier: public, datasets: [nq], methods: [sm], reader: smollm2-135m}
      - <<: *one
        methods: [own, gold, ones]
        trained: {own: r2ag-mixed, gold: r2ag-mixed-gold, ones: r2ag-mixed-constant}
        seeds: [0]
"""


@pytest.mark.parametrize(
    ("own", "ones", "word", "told"),
    [
        (60, 30, "reproduced", ""),
        (
            20,
            30,
            "not judged",
            "r2ag-mixed is not seen to do its work: answers.before, nq, recall "
            "above that without it: 0.0",
        ),
        (
            60,
            80,
            "not judged",
            "r2ag-mixed is not seen to do its work: answers.before, nq, recall "
            "of Labels above Ones: 0.0",
        ),
    ],
)
def test_a_former_counts_where_it_gains_and_where_the_set_can_tell(tmp_path, own, ones, word, told):
    """Gold labels stand at 80: over constants of as much they say that the set tells nothing."""
    text = PAPER.replace("run: qdc, retriever: bm25", "run: r2ag, retriever: minilm")
    trained = "reader: smollm2-135m\n        trained: {qdc: r2ag-mixed}\n"
    grid = text.rindex("        reader: smollm2-135m\n")
    text = text[:grid] + "        " + trained + text[grid + len("        reader: smollm2-135m\n") :]
    text = text.replace("exhibits:\n", BEFORE + "exhibits:\n") + HELD_OUT
    paper, root = read(tmp_path, text=text), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    levels = {"sm": 20, "own": own, "gold": 80, "ones": ones}
    fill(root, paper, "before", lambda d, m: 0, recall=lambda m, i: i < levels[m])
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == word
    assert told in judged.verdict.reason


@pytest.mark.parametrize(
    ("second", "control", "unproven"),
    [(60, 60, None), (20, 60, "r2ag-mixed-1"), (60, 20, "r2ag-mixed-free")],
)
def test_each_training_and_a_control_of_the_same_method_is_held_to_its_proof(
    tmp_path, second, control, unproven
):
    """A control that learned nothing is beaten by anything."""
    seeded = (
        "        reader: smollm2-135m\n        seeds: [0, 1]\n"
        "        trained: {qdc: r2ag-mixed, sm: r2ag-mixed-free}\n"
    )
    text = PAPER.replace("run: qdc, retriever: bm25", "run: r2ag, retriever: minilm")
    ours = "run: r2ag, retriever: minilm, settings: {inputs: free}"
    text = text.replace("run: single_step, retriever: bm25", ours)
    grid = text.rindex("        reader: smollm2-135m\n")
    proof = BEFORE.partition("  - {<<: *by")[0].replace("method: own", "method: [own, free]")
    before = HELD_OUT.replace("seeds: [0]", "seeds: [0, 1]").replace("ones: {label", "free: {label")
    before = before.replace("[own, gold, ones]", "[own, free]")
    before = before.replace("ones: r2ag-mixed-constant", "free: r2ag-mixed-free")
    text = (text[:grid] + seeded).replace("exhibits:\n", f"{proof}exhibits:\n") + before
    paper, root = read(tmp_path, text=text), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    levels = {"smollm2-135m": 20, "r2ag-mixed": 60, "r2ag-mixed-1": second}
    for cell in paper.exhibits["before"].cells():
        level = levels.get(cell.condition.reader, control)
        with open_record(root, cell.condition, {}) as record:
            for i in range(100):
                line = {"id": f"q{i}", "kind": "bridge", "cluster": f"q{i}", "hits": []}
                record.append({**line, "scores": {"recall": float(i < level)}})
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == ("not judged" if unproven else "reproduced")
    assert unproven is None or f"{unproven} is not seen to do its work" in judged.verdict.reason


@pytest.mark.parametrize(
    ("second", "word"), [(30, "reproduced"), (80, "not judged"), (None, "not run")]
)
def test_what_is_trained_several_times_is_beaten_each_time(tmp_path, second, word):
    """Gold labels stand at 80, constants at 30 in their first training."""
    text = PAPER.replace("run: qdc, retriever: bm25", "run: r2ag, retriever: minilm")
    grid = text.rindex("        reader: smollm2-135m\n")
    seeded = "        reader: smollm2-135m\n        trained: {qdc: r2ag-mixed}\n"
    rows = "{tier: public, datasets: [nq], reader: smollm2-135m, "
    before = HELD_OUT.replace("own, gold, ones]", "own, gold]") + (
        f"      - {rows}methods: [ones], trained: {{ones: r2ag-mixed-constant}}, seeds: [0, 1]}}\n"
    )
    text = (text[:grid] + seeded).replace("exhibits:\n", f"{BEFORE}exhibits:\n") + before
    paper, root = read(tmp_path, text=text), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: ABLE[m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    levels = {"smollm2-135m": 20, "r2ag-mixed": 60, "r2ag-mixed-gold": 80}
    levels |= {"r2ag-mixed-constant": 30, "r2ag-mixed-constant-1": second}
    for cell in paper.exhibits["before"].cells():
        if (level := levels[cell.condition.reader]) is None:
            continue
        with open_record(root, cell.condition, {}) as record:
            for i in range(100):
                line = {"id": f"q{i}", "kind": "bridge", "cluster": f"q{i}", "hits": []}
                record.append({**line, "scores": {"recall": float(i < level)}})
    [judged] = judge(paper, "public", Results(root))
    assert judged.verdict.word == word


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("exhibit: taken", "exhibit: take", "proof 1: exhibit 'take' is unknown, did you mean"),
        ("[recall, f1]", "[recal, f1]", "proof 1: metric 'recal' is unknown"),
        ("against: precision", "against: precison", "proof 1: metric 'precison' is unknown"),
        ("setting: judge", "setting: juge", "proof 1: no condition has the setting 'juge'"),
        ("against: ", "agains: ", "proof 1: unknown key 'agains'"),
        ("{nq: [", "{nqq: [", "proof 1: data set 'nqq' is unknown"),
        ("musique]", "musiqu]", "proof 1: data set 'musiqu' is unknown"),
        ("against:", "more: {method: ow}, against:", "proof 1: method 'ow' is unknown"),
    ],
)
def test_a_proof_that_cannot_be_is_refused(tmp_path, old, new, message):
    with pytest.raises(StudyError, match=f"answers/paper.yaml.*{message}"):
        read_proven(tmp_path, proofs=PROOFS.replace(old, new))


@pytest.mark.parametrize("name", papers.names())
def test_a_proof_on_the_testbed_asks_a_fixed_number(name):
    """Or what rests on it could not be registered once it passes."""
    paper = papers.load(name)
    for proof in paper.proofs:
        open_ended = [c for c in paper.exhibits[proof.exhibit].cells("testbed") if not c.asked]
        assert not open_ended


# ------------------------------------------------------------------- kinds that decide


def by_kind(tmp_path, contrast, kinds, *, text=PAPER, apart=None):
    """qdc gains on bridge questions and loses all that can be guessed; each kind in turn."""
    paper, root = read(tmp_path, contrast, text), tmp_path / "records"
    for key in ("readers", "table1"):
        for cell in paper.exhibits[key].cells():
            method = cell.keys["method"]
            with open_record(root, cell.condition, {}) as record:
                for i in range(100):
                    of_set = (apart or {}).get(cell.keys["dataset"], kinds)
                    kind = of_set[i % len(of_set)]
                    right = method in ("qdc", "gold") if kind == "bridge" else method != "qdc"
                    name = f"q{i}-{cell.keys['dataset']}"
                    line = {"id": name, "kind": kind, "cluster": name, "hits": []}
                    record.append({**line, "scores": {"acc": float(right), "recall": float(right)}})
    [judged] = judge(paper, "public", Results(root))
    return judged


BOTH = ("bridge", "comparison")


def test_what_can_be_guessed_decides_no_answers_but_what_is_found_does(tmp_path):
    answers = by_kind(tmp_path, GAIN, BOTH).verdict
    assert (answers.word, answers.interval.n, answers.interval.estimate) == ("reproduced", 100, 100)
    (tmp_path / "found").mkdir()
    found = by_kind(tmp_path / "found", GAIN.replace("acc", "recall"), BOTH).verdict
    assert (found.interval.n, found.interval.estimate) == (200, 0)


def test_no_primary_contrast_makes_guesses_decide_and_a_secondary_one_shows_them(tmp_path):
    guesses = GAIN.replace("delta", "kinds: [comparison], delta")
    assert by_kind(tmp_path, guesses, BOTH).verdict.word == "not judged"
    (tmp_path / "aside").mkdir()
    aside = guesses.replace("delta", "role: secondary, delta")
    [part] = by_kind(tmp_path / "aside", aside, BOTH).parts
    assert (part.interval.n, part.interval.estimate) == (100, -100)


def test_a_data_set_of_guesses_alone_has_no_say_and_that_is_said(tmp_path):
    each = GAIN.replace("delta", "rule: each, delta")
    found = by_kind(tmp_path, each, ("boolean",)).verdict
    assert found.word == "not judged"
    assert "each can be guessed" in found.reason
    (tmp_path / "one").mkdir()
    musique = {"musique": ("boolean",)}
    found = by_kind(tmp_path / "one", each, ("bridge",), apart=musique).verdict
    assert found.word == "reproduced"
    assert found.reason.endswith("; no question that decides: MuSiQue")


def test_only_kinds_that_the_papers_data_have_count(tmp_path):
    own = PAPER.replace("exhibits:\n", 'kinds: {"hotpot*": [bridge]}\nexhibits:\n', 1)
    recall = GAIN.replace("acc", "recall")
    found = by_kind(tmp_path, recall, ("bridge", "riddle"), text=own).verdict
    assert found.interval.n == 150  # 50 of HotpotQA, all of MuSiQue, which is not named


# --------------------------------------------------------------------- what is no gate


def test_the_gate_is_as_many_questions_as_it_names(tmp_path):
    """The first ten are right with gold passages alone; of forty that is a quarter, of all 10 %."""
    forty = PAPER.replace("gate: {", "gate: {n: 40, ")
    paper, root = read(tmp_path, text=forty), tmp_path / "records"
    fill(root, paper, "readers", lambda d, m: {"gold": 10, "closed": 0}[m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    assert judge(paper, "public", Results(root))[0].verdict.word == "reproduced"
    whole = judge(read(tmp_path), "public", Results(root))[0].verdict
    assert (whole.word, "add 10.0 [" in whole.reason) == ("reader too weak", True)


def test_without_gold_passages_there_is_no_gate_and_that_is_said(tmp_path):
    bare = PAPER.replace("gate: {", "gate: {without: [musique], ")
    paper, root = read(tmp_path, text=bare), tmp_path / "records"
    gate = {"hotpotqa": ABLE, "musique": UNABLE}
    fill(root, paper, "readers", lambda d, m: gate[d][m])
    fill(root, paper, "table1", lambda d, m: {"sm": 30, "qdc": 60}[m])
    found = judge(paper, "public", Results(root))[0].verdict
    assert (found.word, found.interval.n) == ("reproduced", 200)
    assert found.reason.endswith("; no gate possible: MuSiQue (no gold passages)")
    lines = readers.gate(paper, Results(root), ["public"]).body
    assert [line[-1] for line in lines] == ["counts", "no gate possible"]


def test_what_can_be_guessed_is_shown_beside_with_what_guessing_gets_right(tmp_path):
    by_kind(tmp_path, GAIN, BOTH)
    paper, results = read(tmp_path), Results(tmp_path / "records")
    judged = judge(ledger.guessable(paper, ["answers.c01"]), "public", results)
    [part] = judged[0].parts
    assert (part.interval.n, part.interval.estimate) == (100, -100)
    assert part.contrast.label == "acc, where it can be guessed"
    for cell in papers.exhibit(ledger.GUESSES)[1].cells("public"):
        if cell.condition.method == "guess" and cell.keys["dataset"] == "hotpotqa":
            with open_record(tmp_path / "records", cell.condition, {}) as record:
                for i, kind in enumerate(("bridge", *["comparison"] * 4)):
                    line = {"id": f"q{i}", "kind": kind, "cluster": f"q{i}", "hits": []}
                    record.append({**line, "scores": {"acc": float(i == 1)}})
    lines = ledger.guesses(results, "public")
    assert [line[2] for line in lines] == [
        "HotpotQA: no, whatever is asked",
        "HotpotQA: the first of two that are offered",
    ]
    assert all(line[4].startswith("25.00 [") for line in lines)  # one of four comparisons


@pytest.mark.parametrize(("own", "most"), [("", 60), ("kinds: [bridge], ", 100)])
def test_what_could_be_reached_is_of_the_questions_that_are_compared(tmp_path, own, most):
    """With gold passages all forty of one kind are right, and twenty of the other sixty."""
    paper = read(tmp_path, GAIN.replace("{metric", "{" + own + "metric"))
    root = tmp_path / "records"
    kind = {"kind": lambda i: "bridge" if i < 40 else "compositional"}
    fill(root, paper, "readers", lambda d, m: {"gold": 60, "closed": 0}[m], **kind)
    fill(root, paper, "table1", lambda d, m: 30, **kind)
    results, [claim] = Results(root), paper.claims
    cell = paper.exhibits["table1"].cells()[0]
    scored = [results.scores(cell, "acc")] * 2
    assert gate.room(paper, claim.contrasts[0], cell, scored, results) == (most, 30)
