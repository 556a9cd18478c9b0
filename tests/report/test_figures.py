"""Pictures from hand-made rows: the same bytes each time, and their numbers in words."""

from __future__ import annotations

import base64
import itertools
import math
import re
from dataclasses import replace

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
    picture = against_k([*rows, row(k=4, ours=70)])
    assert picture.alt == (
        "Line chart. MuSiQue, two searches, k 3: recall 60; MuSiQue, two searches, k 4: recall 70."
    )
    assert "HotpotQA" not in words_in(picture)  # no empty panel


def test_a_printed_row_that_has_no_such_setting_does_not_stop_the_figure():
    waiting = Row("mini.t", "public", "primary", {"dataset": "nq", "method": "qdc"}, "recall", "9")
    assert against_k([waiting, row(ours=60), row(k=4, ours=60)]).alt.count("recall") == 2


def test_of_one_number_of_passages_no_line_is_drawn():
    assert "not drawn, since k is 3 in every record" in repr(
        against_k([row(ours=60), row("sm", ours=1)])
    )


@pytest.mark.parametrize("rows", [[], [row()], [row("cis", ours=60)]])
def test_without_a_value_against_k_is_a_sentence(rows):
    note = against_k(rows)
    assert isinstance(note, Note)
    assert (
        note._repr_markdown_() == repr(note) == "This exhibit has no such condition at this tier."
    )


# ------------------------------------------------------------------- colour blindness

# Machado, Oliveira and Fernandes 2009, full strength, on linear RGB.
SEEN_AS = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}
TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def times(matrix, vector):
    return [sum(m * v for m, v in zip(line, vector, strict=True)) for line in matrix]


def lab(colour, eye):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    seen = [min(max(c, 0), 1) for c in times(SEEN_AS[eye], linear)]
    x, y, z = (
        v ** (1 / 3) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116
        for v in (c / w for c, w in zip(times(TO_XYZ, seen), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_distances_of_colours_are_computed_right():
    assert lab((1, 1, 1), "normal") == pytest.approx((100, 0, 0), abs=0.01)
    assert lab((1, 0, 0), "normal") == pytest.approx((53.24, 80.09, 67.20), abs=0.05)
    red, green = (lab(c, "deuteranopia") for c in ((0.85, 0.35, 0.0), (0.55, 0.55, 0.0)))
    assert (
        math.dist(red, green) < 20 < math.dist(lab((1, 0, 0), "normal"), lab((0, 1, 0), "normal"))
    )


@pytest.mark.parametrize("eye", SEEN_AS)
def test_the_first_colours_are_told_apart_by_every_eye(eye):
    _, colours = figures.plots()
    for one, other in itertools.combinations(colours[:4], 2):
        assert math.dist(lab(one, eye), lab(other, eye)) > 15


def test_lines_differ_by_more_than_their_colour(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        figures, "Picture", lambda figure, *rest: drawn.append(figure) or Picture(figure, "x")
    )
    methods = {name: name for name in ("sm", "qdc", "bm25", "cis")}
    rows = [row(m, k, ours=50, metric=t) for m in methods for t in METRICS for k in (3, 4)]
    figures.against_k(rows, metrics=METRICS, methods=methods, ylabel="%")
    looks = [
        (bars.lines[0].get_marker(), bars.lines[0].get_linestyle())
        for bars in drawn[0].axes[0].containers
    ]
    assert len(looks) == len(set(looks)) == len(methods) * len(METRICS)


def test_values_that_lie_high_and_close_are_seen_apart(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        figures, "Picture", lambda figure, *rest: drawn.append((figure, rest)) or "made"
    )
    methods = {"sm": "one search", "qdc": "two searches"}
    rows = [row(m, k, ours=70) for m in methods for k in (3, 4, 6)]
    figures.against_k(rows, metrics=METRICS, methods=methods, ylabel="%", caption="Recall")
    [(figure, rest)] = drawn
    axis = figure.axes[0]
    assert axis.get_ylim()[0] == 60
    assert rest[1] == "Recall; the axis begins at 60"
    left, right = ([x for x, _ in bars.lines[0].get_xydata()] for bars in axis.containers)
    assert all(0 < r - x < 0.1 for x, r in zip(left, right, strict=True))
    assert [round(x) for x in left] == [round(x) for x in right] == [3, 4, 6]
    figures.against_k([*rows, row(k=8, ours=20)], metrics=METRICS, methods=methods, ylabel="%")
    assert drawn[1][0].axes[0].get_ylim()[0] == 0
    assert "begins" not in drawn[1][1][1]


def test_a_panel_with_higher_values_than_the_first_is_not_cut(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        figures, "Picture", lambda figure, *rest: drawn.append(figure) or Picture(figure, "x")
    )
    against_k(
        [row(k=k, dataset=d, ours=at) for d, at in (("nq", 20), ("musique", 80)) for k in (3, 4)]
    )
    assert all(axis.get_ylim()[1] >= 82 for axis in drawn[0].axes)


def test_there_is_a_marker_for_each_colour():
    _, colours = figures.plots()
    assert len(set(figures.MARKERS)) == len(figures.MARKERS) == len(colours)


def test_a_point_stands_at_its_cost_and_quality_with_the_bars_of_both():
    labels = {"sm": "one search", "qdc": "two searches"}
    points = [
        figures.Point("world-B", "sm", Interval(1, 0.5, 2, 9), Interval(40, 30, 45, 9)),
        figures.Point("world-B", "qdc", Interval(2, 1, 4, 9), Interval(60, 50, 65, 9)),
        figures.Point("musique", "qdc", Interval(3, 2, 5, 9), Interval(70, 60, 75, 9)),
    ]
    words = {"xlabel": "searches", "ylabel": "EM, %", "told": "{y:.0f} at {x:.1f}"}
    made = figures.point_panels(points, labels, ["world-B", "musique"], **words)
    line, _, (across, along) = made.axes["world-B"].containers[1].lines
    assert line.get_xydata().tolist() == [[2, 60]]
    assert [segment.tolist() for segment in across.get_segments()] == [[[1, 60], [4, 60]]]
    assert [segment.tolist() for segment in along.get_segments()] == [[[2, 50], [2, 65]]]
    assert (line.get_color(), line.get_marker()) == made.looks["qdc"] != made.looks["sm"]
    assert [len(axis.containers) for axis in made.axes.values()] == [2, 1]
    assert [axis.get_xlabel() for axis in made.axes.values()] == ["searches"] * 2
    assert made.spoken["musique"] == ["MuSiQue, two searches: 70 at 3.0"]
    Picture(made.figure, "closes it")


def test_a_method_keeps_its_look_where_another_has_no_point():
    """Figures of one page that share their labels, so that a colour means one method."""
    labels = {"sm": "one search", "qdc": "two searches"}
    point = figures.Point("world-B", "qdc", Interval(2, 1, 4, 9), Interval(60, 50, 65, 9))
    words = {"xlabel": "searches", "ylabel": "EM, %", "told": "{y:.0f} at {x:.1f}"}
    alone = figures.point_panels([point], labels, ["world-B"], **words)
    both = figures.point_panels([point, replace(point, method="sm")], labels, ["world-B"], **words)
    assert alone.looks["qdc"] == both.looks["qdc"] != both.looks["sm"]
    told = [
        [text.get_text() for text in made.figure.legends[0].get_texts()] for made in (alone, both)
    ]
    assert told == [["two searches"], ["one search", "two searches"]]
    assert "rr-slim" in Picture(alone.figure, "one panel fits a phone")._repr_html_()
    wide = figures.point_panels([point], labels, ["world-B", "musique"], **words)
    assert "rr-slim" not in Picture(wide.figure, "two do not")._repr_html_()
    Picture(both.figure, "closes it")


def test_of_many_panels_one_has_the_label():
    points = [figures.Point(str(i), "sm", *[Interval(1, 0, 2, 5)] * 2) for i in range(5)]
    words = {"xlabel": "searches", "ylabel": "%", "told": "{y} at {x}"}
    made = figures.point_panels(points, {"sm": "one"}, [*"01234"], **words)
    assert [axis.get_xlabel() for axis in made.axes.values()] == ["", "", "searches", "", ""]
    Picture(made.figure, "closes it")


def test_labels_of_an_axis_do_not_touch():
    assert figures._apart([1, 2, 3, 4, 6, 8, 10, 15, 20]) == [1, 3, 6, 8, 10, 15, 20]
    assert figures._apart([3, 4, 6]) == [3, 4, 6]
    assert figures._apart([]) == []


def test_a_figure_hands_out_the_rows_that_it_draws():
    picture = against_k([row(ours=60), row(k=4, ours=60), row("cis", ours=1)])
    head, *rows = picture.data.text.splitlines()
    assert head.startswith("exhibit,tier,dataset,method")
    assert [line.split(",")[3] for line in rows] == ["qdc", "qdc"]
    assert picture.data.name == "mini.t-musique.csv"
    assert 'download="mini.t-musique.csv"' in picture._repr_html_()
