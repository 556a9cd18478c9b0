"""The book's own colours: each text against each ground on which it can stand, in both modes."""

from __future__ import annotations

import re
from pathlib import Path

import pydata_sphinx_theme
import pytest

ROOT = Path(__file__).resolve().parents[2]
STYLE = (ROOT / "book/_static/rag_repro.css").read_text(encoding="utf-8")
THEME = next(Path(pydata_sphinx_theme.__file__).parent.rglob("pydata-sphinx-theme.css")).read_text(
    encoding="utf-8"
)
MODES = ("light", "dark")
ENOUGH = 4.5  # WCAG 2, level AA


def palette(mode):
    """The theme's variables in one mode -> hexadecimal colours."""
    found = {}
    for block in re.findall(rf'html\[data-theme="?{mode}"?\]\{{([^}}]*)\}}', THEME):
        found |= dict(re.findall(r"(--pst-color-[\w-]+):(#[0-9a-f]{3,6})\b", block))
    return found


def luminance(colour):
    digits = colour.removeprefix("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def used(declaration):
    """The variables that our style gives to a property, and its plain colours."""
    values = re.findall(rf"[{{;\s]{declaration}:\s*([^;]+);", STYLE)
    return {name for v in values for name in re.findall(r"var\((--pst-color-[\w-]+)\)", v)}


def test_contrast_is_computed_as_the_standard_says():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_our_style_names_colours_by_the_themes_variables_alone():
    plain = re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(", STYLE)
    assert plain == ["#ffffff"]  # the ground of figures, white in both modes
    assert used("color") >= {"--pst-color-text-base", "--pst-color-text-muted"}


@pytest.mark.parametrize("mode", MODES)
def test_every_text_can_be_read_on_every_ground(mode):
    colours = palette(mode)
    grounds = {"--pst-color-background", "--pst-color-surface"}
    assert {name for name in used("background") if "border" not in name} <= grounds
    for text in used("color"):
        for ground in grounds:
            value = contrast(colours[text], colours[ground])
            assert value >= ENOUGH, f"{mode}: {text} on {ground}: {value:.2f}"


def test_the_two_modes_differ():
    assert palette("light")["--pst-color-background"] != palette("dark")["--pst-color-background"]
