"""DRAGIN's equations against its released code, decision by decision, out of records.

A line's `variants` holds, for each of `methods.dragin.replay.VARIANTS`, whether it gave the
alarm on the question's one draft, how much of it stays, and its query's hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..data.titles import word
from ..methods.dragin.replay import DIFFERENCES, EQUATIONS, RELEASED, VARIANTS
from ..methods.reading import PROMPTS, extract, released_answer
from ..study.papers import Cell
from ..study.scores import Results
from . import missing
from .picture import Download, Note
from .table import Table
from .values import share_of

Line = Mapping[str, Any]
WORDS = {
    RELEASED: "the released code",
    "D1": "D1: raw attention, not by the sentence's mean",
    "D2": "D2: later tokens' looks alone, not one's own",
    "D3": "D3: the heads' mean before the maximum",
    "D4": "D4: attention as the reader wrote, prompt and all",
    "D5": "D5: tokens, not words",
    "D6": "D6: meaning decides on the alarm",
    "D7": "D7: stop words, not parts of speech",
    "D8": "D8: cut at the token, not before its sentence",
    "D9": "D9: the first word alone",
    "D10": "D10: the token's own row",
    "D11": "D11: all tokens, not content words",
    "D12": "D12: the context as the reader had it",
    EQUATIONS: "the equations, at a threshold of their own",
}

# D28: texts as readers write them, made up, and whether the data set asks for yes or no.
SAYINGS = (
    ("Ada was born in Sarnby. So the answer is Sarnby.", False),
    ("Ada was born in Sarnby. Thus, the answer is Sarnby.", False),
    ("So the answer is Sarnby. So the answer is Old Perrin.", False),
    ("So the answer is Sarnby. Ada lived there.\nShe wrote.", False),
    ("A pear floats. So the answer is no, it would not sink.", True),
    ("A stone sinks. So the answer is: yes.", True),
)


def answers(caption: str = "", name: str = "") -> Table:
    """One line of SAYINGS each: the answer that the released code takes, and ours."""
    body = [
        [
            text.replace("\n", " \u21b5 "),
            "yes or no" if yes_no else "words",
            *((said or "none").replace("\n", " \u21b5 ") for said in taken),
        ]
        for text, yes_no in SAYINGS
        for template in [PROMPTS["dragin_yes_no" if yes_no else "dragin"]]
        for taken in [(released_answer(text, yes_no), extract(text, template))]
    ]
    return Table(["the reader's text", "asked for", "released code", "here"], body, caption, name)


def agreement(
    cells: Sequence[Cell], results: Results, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a data set and variant: alarms, and how often it decides as the released code.

    As often in percent of questions, 95 %, questions drawn. Same cut and same query are of
    the questions on which both gave the alarm.
    """
    body = []
    for cell in cells:
        lines = [line for line in results.lines(cell) or () if "variants" in line]
        if not lines:
            continue
        for place, variant in enumerate(VARIANTS):
            both = [(line["variants"][0], line["variants"][place], line) for line in lines]
            row = [word(cell.keys["dataset"]), WORDS[variant], _share(both, lambda _, new: new[0])]
            if variant == RELEASED:
                body.append([*row, "", "", "", len(lines)])
                continue
            met = [(old, new, line) for old, new, line in both if old[0] and new[0]]
            body.append(
                [
                    *row,
                    _share(both, lambda old, new: old[0] == new[0]),
                    _share(met, lambda old, new: old[1] == new[1]),
                    _share(met, lambda old, new: old[2] == new[2]),
                    len(lines),
                ]
            )
    if not body:
        return missing.note(cells, results, caption)
    head = ["data set", "decided by", "alarm, %", "alarm or none alike, %"]
    head += ["same cut, %", "same query, %", "n"]
    return Table(head, body, caption, name, Download.of(name, head, body))


def unmoved(cells: Sequence[Cell], results: Results) -> list[str]:
    """Differences that change no decision, cut or query of any recorded question."""
    still = dict.fromkeys(DIFFERENCES, True)
    for cell in cells:
        for line in results.lines(cell) or ():
            if held := line.get("variants"):
                for place, variant in enumerate(VARIANTS):
                    if variant in still and held[place] != held[0]:
                        still[variant] = False
    return [variant for variant, same in still.items() if same]


def still(cells: Sequence[Cell], results: Results) -> Note:
    """In words which differences flip nothing on the recorded drafts, if any."""
    drafts = sum("variants" in line for cell in cells for line in results.lines(cell) or ())
    if not drafts:
        return missing.note(cells, results, "Differences that change nothing")
    on_all = f"the {drafts:,} recorded drafts"
    names = unmoved(cells, results)
    if not names:
        return Note(
            f"Each of the {len(DIFFERENCES)} differences changes an alarm, a cut or a query of "
            f"{on_all}."
        )
    told = "; ".join(WORDS[name] for name in names)
    return Note(f"No alarm, cut or query of {on_all} is changed by {told}.")


def _share(pairs: Sequence[tuple[Any, Any, Line]], holds: Callable[[Any, Any], Any]) -> str:
    told = [bool(holds(old, new)) for old, new, _ in pairs]
    return share_of(told, [line for *_, line in pairs]) or "none"
