"""Pictures from hand-made rows: the same bytes each time, and their numbers in words."""

from __future__ import annotations

import base64
import re

import pytest

from rag_repro.evaluation.statistics import Interval
from rag_repro.report import figures
from rag_repro.report.exhibits import Row
from rag_repro.report.picture import Note, Picture

METRICS = {"recall": "recall", "all_gold": "all gold"}
METHODS = {"sm": "one search", "qdc": "two searches"}


def row(method="qdc", k=3, metric="recall", dataset="musique", ours=None, diff=None):
    """A row with an interval of two points either side."""

    def about(value):
        return None if value is None else Interval(value, value - 2, value + 2, 50)

    keys = {"dataset": dataset, "method": method, "k": k}
    return Row("mini.t", "public", "primary", keys, metric, ours=about(ours), diff=about(diff))


def against_k(rows):
    return figures.against_k(rows, metrics=METRICS, methods=METHODS, ylabel="share found, %")


def drawn(alt="A figure", caption=""):
    plt, _ = figures.plots()
    figure, axis = plt.subplots()
    axis.errorbar([1, 2], [3, 4], yerr=[1, 1])
    axis.set_title("T")
    return Picture(figure, alt, caption)


def words_in(picture):
    """The texts of a figure: matplotlib notes each beside the paths that draw it."""
    return re.findall(r"<!-- (.*?) -->", picture.svg.decode())


def test_the_same_figure_is_the_same_bytes():
    first, second = drawn(), drawn()
    assert first.svg == second.svg
    assert b"<dc:date>" not in first.svg
    rows = [row(ours=60, k=3), row(ours=70, k=4), row("sm", ours=50)]
    assert against_k(rows).svg == against_k(rows).svg
    assert against_k(rows).svg != against_k(rows[:2]).svg


def test_a_picture_leaves_no_figure_open():
    plt, _ = figures.plots()
    before = plt.get_fignums()
    drawn()
    assert plt.get_fignums() == before


def test_alt_text_and_caption_are_escaped():
    page = drawn('"a" <b> & c', "<script>x</script>")._repr_html_()
    assert 'alt="&quot;a&quot; &lt;b&gt; &amp; c"' in page
    assert "<figcaption>&lt;script&gt;x&lt;/script&gt;</figcaption>" in page
    assert "figcaption" not in drawn()._repr_html_()


def test_a_page_holds_the_svg_itself():
    picture = drawn()
    [data] = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', picture._repr_html_())
    assert base64.b64decode(data) == picture.svg
    assert repr(picture) == "Picture: A figure"


def test_against_k_says_every_value_that_it_draws():
    rows = [
        row("sm", 3, ours=61.2),
        row("qdc", 3, ours=70.6),
        row("qdc", 3, "all_gold", ours=40),
        row("qdc", 4, dataset="world-B", ours=80),
    ]
    picture = against_k(rows)
    assert picture.alt == (
        "Line chart. MuSiQue, one search, k 3: recall 61; MuSiQue, two searches, k 3: recall 71; "
        "MuSiQue, two searches, k 3: all gold 40; world-B, two searches, k 4: recall 80."
    )
    seen = words_in(picture)
    assert {"MuSiQue", "world-B", *METRICS.values(), *METHODS.values()} <= set(seen)
    assert seen.count("share found, %") == 1


def test_against_k_leaves_out_what_is_not_asked_for_or_not_run():
    rows = [row(ours=60), row("cis", ours=1), row(metric="em", ours=2), row(dataset="hotpotqa")]
    picture = against_k(rows)
    assert picture.alt == "Line chart. MuSiQue, two searches, k 3: recall 60."
    assert "HotpotQA" not in words_in(picture)  # no empty panel


def test_a_printed_row_that_has_no_such_setting_does_not_stop_the_figure():
    waiting = Row("mini.t", "public", "primary", {"dataset": "nq", "method": "qdc"}, "recall", "9")
    assert against_k([waiting, row(ours=60)]).alt.count("recall") == 1


@pytest.mark.parametrize("rows", [[], [row()], [row("cis", ours=60)]])
def test_without_a_value_against_k_is_a_sentence(rows):
    note = against_k(rows)
    assert isinstance(note, Note)
    assert note._repr_markdown_() == repr(note) == "No record of this is shown here."


def test_gains_say_difference_and_interval():
    rows = [
        row(diff=4.25),
        row(k=4, diff=-1.5),
        row("sm", diff=9),
        row(metric="all_gold", diff=8),
        row(ours=60),
    ]
    picture = figures.gains(rows, metric="recall", method="qdc", caption="C")
    assert picture.alt == (
        "Differences to the baseline. MuSiQue, k = 3: +4.2, from +2.2 to +6.2; "
        "MuSiQue, k = 4: -1.5, from -3.5 to +0.5"
    )
    assert {"MuSiQue, k = 3", "MuSiQue, k = 4"} <= set(words_in(picture))
    assert picture.caption == "C"


def test_the_papers_own_gain_and_the_smallest_effect_are_drawn():
    def svg(**given):
        return figures.gains([row(diff=4)], metric="recall", method="qdc", **given).svg

    assert svg(printed={("musique", "3"): 6.0}) != svg()
    assert svg(printed={("musique", "4"): 6.0}) == svg()
    assert svg(delta=2.0) != svg()


@pytest.mark.parametrize("rows", [[], [row(ours=60)], [row("sm", diff=1)]])
def test_without_a_difference_gains_is_a_sentence(rows):
    assert isinstance(figures.gains(rows, metric="recall", method="qdc"), Note)
