"""Do the features tell gold passages from others, and more together than r alone? (r2ag.c43)

No reader has a part in it. Areas under the curve are over all lists of a data set, since
one threshold would have to serve them all; intervals draw questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..data.titles import word
from ..evaluation import calibration
from ..evaluation.calibration import Judgements
from ..evaluation.resampling import fresh
from .lists import SYMBOLS, Listed, relevance
from .picture import Note
from .table import Table
from .values import in_points

FOLDS = 5
STRENGTH = 1.0  # scikit-learn's C
BOTH, ALL = "r and rank, fitted", "r, γ, ζ and rank, fitted"


def table(
    lists: Mapping[str, Sequence[Listed]], former: str, caption: str = "", name: str = ""
) -> Table | Note:
    """One line a data set and signal: its area, and what it has over r's, paired.

    lists: by data set. former: whose head is asked, where it is trained here.
    """
    if not lists:
        said = "its data is not here, or its tier was not asked for"
        return Note(f"{caption}: not shown, since {said}.")
    body = []
    for dataset, held in lists.items():
        judged = {
            said: Judgements.of(values, *kinds(held))
            for said, values in signals(held, former).items()
        }
        r, made_of = SYMBOLS["relevance"], (SYMBOLS["relevance"], "rank", BOTH)
        for said, one in judged.items():
            area = calibration.auc(one, fresh())
            told = [in_points(area), "" if said == r else _more(one, judged[r])]
            told.append("" if BOTH not in judged or said in made_of else _more(one, judged[BOTH]))
            body.append([word(dataset), said, *told, len(held)])
    head = ["data set", "signal", "AUC, % [95 %]", "more than r, points"]
    head += ["more than r and rank, fitted", "lists"]
    return Table(head, body, caption, name)


def outcome(lists: Mapping[str, Sequence[Listed]]) -> Note | None:
    """In a sentence: whether γ and ζ add to r and the rank on each data set (r2ag.c43)."""
    told = []
    for dataset, held in lists.items():
        made = {
            said: Judgements.of(values, *kinds(held))
            for said, values in signals(held, "").items()
            if said in (BOTH, ALL)
        }
        if made:
            more = calibration.auc_gain(made[ALL], made[BOTH], fresh())
            words = (
                "add" if more.lo > 0 else "take away" if more.hi < 0 else "add nothing that shows:"
            )
            told.append(f"on {word(dataset)} γ and ζ {words} {in_points(more, '+')} points")
    if not told:
        return None
    said = "; ".join(told)
    return Note(f"By these lists, beside r and the rank: {said} of area under the curve.")


def _more(one: Judgements, base: Judgements) -> str:
    """The area above another signal's, paired."""
    return in_points(calibration.auc_gain(one, base, fresh()), "+")


def signals(lists: Sequence[Listed], former: str) -> dict[str, np.ndarray]:
    """Signal -> a value for each passage of all lists, in their order; higher: rather gold.

    Of a few lists nothing is fitted.
    """
    rows = np.concatenate([one.rows for one in lists])
    ranks = np.concatenate([np.arange(len(one.rows)) for one in lists])
    r = rows[:, :1]
    made = {symbol: rows[:, i] for i, symbol in enumerate(SYMBOLS.values())}
    made["rank"] = -ranks
    if len(set(kinds(lists)[1])) >= FOLDS:
        made[BOTH] = fitted(np.column_stack([r, ranks]), lists)
        made[ALL] = fitted(np.column_stack([rows, ranks]), lists)
    if told := relevance(former, lists):
        made[f"the head of {former}"] = np.concatenate(told)
    # An area has a place for order alone, and `Judgements` for numbers from 0 to 1.
    return {said: ranked(values) for said, values in made.items()}


def fitted(
    columns: np.ndarray, lists: Sequence[Listed], beside: np.ndarray | None = None
) -> np.ndarray:
    """The probability of gold by a logistic regression that was fitted to other questions.

    columns: (passages of all lists, any), of at least `FOLDS` clusters of questions, which are
    never on both sides. Squares and products are in it, as a former could make them; of what
    is `beside` (passages, any) they are not, for columns would be too many.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    labels, clusters = kinds(lists)
    labels, made = np.asarray(labels), np.zeros(len(columns))
    n = columns.shape[1]
    columns = columns if beside is None else np.column_stack([columns, beside])
    fold = _folds(clusters)
    for part in range(FOLDS):
        out = fold == part
        squares = PolynomialFeatures(2, include_bias=False), slice(n)
        model = make_pipeline(
            StandardScaler(),
            make_column_transformer(squares, remainder="passthrough"),
            LogisticRegression(C=STRENGTH, max_iter=5_000),
        )
        model.fit(columns[~out], labels[~out])
        made[out] = model.predict_proba(columns[out])[:, 1]
    return made


def _folds(clusters: Sequence[str]) -> np.ndarray:
    """(things,) the fold of each: whole clusters, dealt out in the order in which they come."""
    place = {name: i % FOLDS for i, name in enumerate(dict.fromkeys(clusters))}
    return np.array([place[name] for name in clusters])


def kinds(lists: Sequence[Listed]) -> tuple[list[int], list[str]]:
    """Of each passage of all lists: 1 if gold, else 0; and its question's cluster."""
    labels = [label for one in lists for label in one.labels]
    return labels, [one.question.unit for one in lists for _ in one.rows]


def ranked(values: np.ndarray) -> np.ndarray:
    """The same order between 0 and 1, ties kept."""
    _, places = np.unique(values, return_inverse=True)
    return places / max(1, places.max())
