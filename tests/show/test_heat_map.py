"""A heat map says what its answer's trace says: in colours, in titles, and in a table."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from rag_repro.methods.dragin.dynamic_settings import DynamicSettings
from rag_repro.publish import extension
from rag_repro.schema import Answer
from rag_repro.show.heat_map import (
    DARKEST,
    QUANTITIES,
    STEPS,
    HeatMap,
    Quantity,
    Round,
    Shown,
    Word,
    decision,
    decision_words,
    rounds,
    rule,
)
from tests.publish.test_looks import ENOUGH, MODES, contrast, palette
from tests.show.heat_case import DRAGIN, FLARE, QUESTION, TITLES, by_dragin, by_flare, said, shown

VOID = {"br", "img"}


class Page(HTMLParser):
    """HTML as open elements: checks that each is closed, and keeps what is asked of them."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        if tag not in VOID:
            self.open.append((tag, len(self.elements) - 1))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, place in self.open:
            self.texts[place] += data

    def of(self, wanted, key=None):
        found = zip(self.elements, self.texts, strict=True)
        return [
            (attrs, text)
            for (tag, attrs), text in found
            if tag == wanted and (key is None or key in attrs)
        ]


@pytest.fixture(scope="module")
def html():
    return HeatMap(
        QUESTION, [by_dragin(), by_flare()], TITLES, "Two <ways>", "fig-heat"
    )._repr_html_()


def rows_of(page):
    """The labels of the lists, with what belongs to each."""
    labels = [text for _, text in page.of("dt")]
    return list(zip(labels, [text for _, text in page.of("dd")], strict=True))


# ------------------------------------------------------------------------ rounds


def test_a_round_is_a_decision_with_its_search_and_the_text_around_it():
    first, second = rounds(by_dragin().answer)
    assert (first.before, second.before) == ("", first.after)
    assert first.after.endswith(" It seats")
    assert first.search["found"] == ["p1", "p2", "p3"]
    assert second.search is None
    assert second.after == by_dragin().answer.text
    # FLARE searches with the question before anything is written.
    before, one, two, *_ = rounds(by_flare().answer)
    assert before.decided is None
    assert before.search["query"] == QUESTION.text
    assert (one.search["query"], one.after) == ("The Mariners played at Hall.", "")
    assert (two.search, two.after) == (None, " The Mariners played in Maine.")


def test_words_are_cut_where_the_draft_was_and_marked_where_the_alarm_is():
    made = decision_words(rounds(by_dragin().answer)[0].decided, DRAGIN)
    assert [w.text for w in made if w.alarm] == ["4,250"]
    assert [w.text for w in made if w.dropped][:2] == ["4,250", "<men>."]
    assert not any(w.left_out for w in made)
    assert all(w.parted for w in made)
    assert [w.values["entropy"] for w in made if w.alarm] == [3.0]
    doubt = decision_words(rounds(by_flare().answer)[1].decided, FLARE)
    assert [w.text for w in doubt if w.alarm] == ["Bank", "Hall."]  # p up to 0.8
    assert [w.text for w in doubt if w.left_out] == ["Bank"]  # p up to 0.4
    assert [w.marks for w in doubt][-2:] == ["alarm, left out, cut off", "alarm, cut off"]


def test_flares_mean_marks_the_least_likely_word():
    mean = dataclasses.replace(FLARE, doubt_of="sentence", doubt=0.9)
    made = shown("x", mean, [said(" Bank Hall was so. It", p={"Hall": 0.5, "was": 0.7})] * 40)
    event = rounds(made.answer)[1].decided
    assert [w.text for w in decision_words(event, mean) if w.alarm] == ["Hall"]


def test_nothing_is_left_out_of_another_rules_query():
    event = rounds(by_flare().answer)[1].decided
    plain = dataclasses.replace(FLARE, query="question")
    assert not any(w.left_out for w in decision_words(event, plain))
    assert [w.text for w in decision_words(event, plain) if w.alarm] == ["Bank", "Hall."]


def test_parts_of_a_word_stand_together():
    event = {
        "stage": "decide",
        "text": " Sarrow is\n\n it",
        "words": ["Sar", "row", "is", "", "it"],
        "probability": [0.9, 0.8, 0.7, 0.6, 0.5],
        "kept": " Sarrow",
        "sentence": [],
        "alarm": [],
    }
    made = decision_words(event, FLARE)
    assert [w.parted for w in made] == [True, False, True, False, True]
    assert [w.dropped for w in made] == [False, False, True, True, True]
    assert [w.text for w in made] == ["Sar", "row", "is", "·", "it"]
    # A cut inside a word: its second part is gone.
    inside = decision_words({**event, "kept": " Sar"}, FLARE)
    assert [w.dropped for w in inside] == [False, True, True, True, True]


def decided(query, alarm=(), **event):
    units = [Word(text, True, i > 0, i in alarm, False) for i, text in enumerate("abc")]
    return decision(Round("", event, None if query is None else {"query": query}), units)


def test_why_a_draft_breaks_off_is_told_whatever_the_rule():
    assert decided(None, score=[]) == "no alarm: the draft stands"
    assert decided("a b", alarm=[1], score=[]) == "alarm at b; 1 of 3 stay"
    # After every sentence, or every so many tokens: no word gave an alarm.
    assert decided("a b", probability=[]) == "a search is due; 1 of 3 stay"
    # The released code clears words without meaning away behind their alarm (D6).
    assert decided("a b", score=[]) == "alarm at a word without meaning; 1 of 3 stay"


def test_a_blank_query_searches_for_nothing():
    nothing = ", its query is blank: nothing is searched for; 1 of 3 stay"
    assert decided(" ", score=[]) == f"alarm at a word without meaning{nothing}"
    assert decided("", alarm=[0, 2], score=[]) == f"alarm at a, c{nothing}"
    assert decided("", probability=[]) == f"a search is due{nothing}"


def test_the_rule_is_told_with_its_threshold():
    assert rule(DRAGIN) == "S above 0.1, gives the alarm"
    assert rule(FLARE) == "p up to 0.8, gives the alarm"
    assert "mean p is up to 0.8" in rule(dataclasses.replace(FLARE, doubt_of="sentence"))
    assert rule(DynamicSettings(timing="random")) == "gives the alarm"


# -------------------------------------------------------------------------- HTML


def test_it_works_without_any_script_and_every_element_is_closed(html):
    page = Page(html)
    names = {tag for tag, _ in page.elements}
    assert not names & {"script", "style", "link", "iframe", "img"}
    assert not [a for _, attrs in page.elements for a in attrs if a.startswith("on")]
    assert "javascript:" not in html


def test_texts_stay_texts(html):
    page = Page(html)
    assert not {"b", "i", "men", "ways", "by"} & {tag for tag, _ in page.elements}
    for text in ("<b>Maine</b>", "<men>", "<i>Colisée</i>", "Two <ways>", "DRAGIN <by its"):
        assert text in unescape(html)
        assert text not in html
    assert 'class="rr-heat tex2jax_ignore mathjax_ignore"' in html


def test_a_title_cannot_leave_its_attribute():
    odd = dataclasses.replace(
        QUESTION, text="Why \"so\" & 'so'?", answers=('"><script>x</script>',)
    )
    made = HeatMap(odd, [by_dragin()], {"p1": '"><script>'}, '"><script>', '"><script>')
    assert "script" not in {tag for tag, _ in Page(made._repr_html_()).elements}


def test_each_round_says_what_was_decided_asked_and_found(html):
    told = rows_of(Page(html))
    of = [text for label, text in told if label == "decision"]
    assert of[:2] == ["alarm at 4,250; 10 of 17 stay", "no alarm: the draft stands"]
    assert of[2] == "alarm at Bank, Hall.; 0 of 6 stay"
    queries = [text for label, text in told if label == "query"]
    assert queries[0] == "How many people can the"
    assert queries[2] == "The Mariners played at Hall."
    found = next(text for label, text in told if label == "found")
    assert found == "Androscoggin Bank <i>Colisée</i> (gold)Bank Hall & Co.Ice"
    before = [text for label, text in told if label == "text before"]
    after = [text for label, text in told if label == "text after"]
    assert before[:2] == ["(nothing)", after[0]]
    assert after[1] == by_dragin().answer.text.strip()
    assert [text for label, text in told if label == "answer"] == ["3,677", "4,000"]
    assert ("accepted", "3,677 or 3677") in told


def test_the_words_of_the_query_are_marked_where_they_were_taken_from(html):
    page = Page(html)
    assert [text for _, text in page.of("mark")] == ["How", "many", "people", "can", "the"]
    [context] = [text for label, text in rows_of(page) if label == "QFS takes"]
    assert context.startswith(f"{QUESTION.text} Answer: The Mariners")
    assert context.endswith("It seats 4,250")  # up to the alarm; "the" of the answer is not marked


def shades(page, label):
    """(title's number, shade) of each word of all lines of a quantity."""
    found = []
    for attrs, text in page.of("span", "title"):
        if match := re.fullmatch(rf"{label} (\d\.\d\d\d)", attrs["title"]):
            shade = re.search(r",(\d\.\d+)\)$", attrs["style"])[1]
            found.append((float(match[1]), float(shade), text))
    return found


def test_the_shade_is_the_value_by_the_highest_of_the_answer(html):
    page = Page(html)
    entropy = shades(page, "entropy")
    assert len(entropy) == 17 + 7
    for value, shade, _ in entropy:
        assert shade == pytest.approx(DARKEST * value / 3.0, abs=0.002)
    assert max(shade for _, shade, _ in entropy) == DARKEST
    score = shades(page, "score")
    top = max(value for value, *_ in score)
    assert [text for value, _, text in score if value == top] == ["▸4,250"]
    # Of a probability the lowest is the darkest, on a scale from 0 to 1.
    for value, shade, _ in shades(page, "probability"):
        assert shade == pytest.approx(DARKEST * (1 - value), abs=0.002)


def test_the_legend_has_the_lightest_and_the_darkest_with_their_values(html):
    page = Page(html)
    told = dict(reversed(rows_of(page)))  # the first of each label is the legend's
    assert told["entropy"].endswith("0.0000.7501.5002.2503.000")
    assert told["probability"].endswith("1.0000.7500.5000.2500.000")
    assert "S above 0.1" in told["signs"]
    styles = [a["style"] for a, _ in page.of("span", "style") if "title" not in a]
    assert styles[0].endswith(",0.000)")
    assert styles[4].endswith(f",{DARKEST:.3f})")
    assert len(styles) == 5 * 4


def test_the_table_below_has_the_same_numbers(html):
    page = Page(html)
    assert len(page.of("details")) == 1
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    ours = [row for row in cells if len(row) == 6]
    assert len(ours) == 17 + 7
    for column, label in enumerate(("entropy", "attention", "score"), start=2):
        in_figure = [(value, text.lstrip("▸")) for value, _, text in shades(page, label)]
        assert [(float(row[column]), unescape(row[1])) for row in ours] == in_figure
    assert [row[5] for row in ours][10:12] == ["alarm, cut off", "cut off"]
    flare = [row for row in cells if len(row) == 4]
    in_figure = [(value, text.lstrip("▸")) for value, _, text in shades(page, "probability")]
    assert [(float(row[2]), row[1]) for row in flare] == in_figure
    assert [row[0] for row in ours] == ["1"] * 17 + ["2"] * 7


def test_alarms_cuts_and_what_is_left_out_have_signs_of_their_own(html):
    page = Page(html)
    assert [text for _, text in page.of("strong")].count("▸4,250") == 3  # on each line
    assert html.count('title="cut here"') == 3 + 2
    assert [text for _, text in page.of("s")] == ["word", "Bank", "4,250."]


def test_an_answer_without_a_draft_shows_what_there_is():
    empty = Shown("nothing", Answer(prediction=None), DRAGIN)
    page = Page(HeatMap(QUESTION, [empty], TITLES)._repr_html_())
    assert ("answer", "(nothing)") in rows_of(page)
    assert not page.of("details")
    asked = Answer(text="x", prediction="x", trace=({"stage": "ask_again", "text": " x"},))
    page = Page(HeatMap(QUESTION, [Shown("again", asked, DRAGIN)], TITLES)._repr_html_())
    assert ("asked again", "x") in rows_of(page)


def test_an_empty_draft_adds_no_quantity():
    ended = shown("x", DRAGIN, [said(" It seats 4,250 men.", {"4,250": 3.0}), said("")] * 2)
    assert [event["words"] for event in _decided(ended)][-1] == []
    page = Page(HeatMap(QUESTION, [ended], TITLES)._repr_html_())
    assert "probability" not in [text for _, text in page.of("dt")]


def _decided(answered):
    return [one.decided for one in rounds(answered.answer) if one.decided]


def test_a_passage_without_a_title_goes_by_its_id():
    html = HeatMap(QUESTION, [by_dragin()], {})._repr_html_()
    assert "<li>p1 <strong>(gold)</strong></li><li>p2</li>" in html


# ----------------------------------------------------------------------- looks


def mixed(colour, ground, alpha):
    digits = ground.removeprefix("#")
    digits = "".join(2 * d for d in digits) if len(digits) == 3 else digits
    under = [int(digits[i : i + 2], 16) for i in (0, 2, 4)]
    parts = [round(alpha * c + (1 - alpha) * u) for c, u in zip(colour, under, strict=True)]
    return "#" + "".join(f"{p:02x}" for p in parts)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda q: q.key)
def test_words_can_be_read_on_every_shade(mode, quantity):
    colours = palette(mode)
    for ground in ("--pst-color-background", "--pst-color-surface"):
        for step in STEPS:
            shade = mixed(quantity.colour, colours[ground], DARKEST * step)
            assert contrast(colours["--pst-color-text-base"], shade) >= ENOUGH


def test_a_level_stays_between_none_and_all():
    rising, falling = QUANTITIES[0], QUANTITIES[-1]
    assert [rising.level(v, 2.0) for v in (0, 1, 2, 3, -1)] == [0, 0.5, 1, 1, 0]
    assert [falling.level(v, 2.0) for v in (1, 0.25, 0)] == [0, 0.75, 1]
    assert rising.level(0.0, 0.0) == 0
    assert isinstance(rising, Quantity)


def test_the_book_numbers_it_as_a_figure(html):
    [node] = extension._made(html)
    assert node["names"] == ["fig-heat"]
    assert node["classes"] == ["rr-exhibit"]
    inner, caption = node.children
    assert caption.astext() == "Two <ways>"
    assert inner.astext().startswith('<div class="rr-heat ')
    assert inner.astext().endswith("</details></div>")
