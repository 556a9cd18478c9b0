"""Pictures: the same bytes each time, escaped texts, colours that every eye tells apart."""

from __future__ import annotations

import base64
import itertools
import math
import re

import pytest

from rag_repro.show import picture
from rag_repro.show.picture import Picture


def drawn(alt="A figure", caption=""):
    plt, _ = picture.plots()
    figure, axis = plt.subplots()
    axis.errorbar([1, 2], [3, 4], yerr=[1, 1])
    axis.set_title("T")
    return Picture(figure, alt, caption)


def test_the_same_figure_is_the_same_bytes():
    first, second = drawn(), drawn()
    assert first.svg == second.svg
    assert b"<dc:date>" not in first.svg


def test_a_picture_leaves_no_figure_open():
    plt, _ = picture.plots()
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
    _, colours = picture.plots()
    for one, other in itertools.combinations(colours[:4], 2):
        assert math.dist(lab(one, eye), lab(other, eye)) > 15


def test_there_is_a_marker_for_each_colour():
    _, colours = picture.plots()
    assert len(set(picture.MARKERS)) == len(picture.MARKERS) == len(colours)
