"""What a page says and shows of a gbmap fit."""

from lodim.design.frame import in_pandas
from lodim.page.picture import MOST_NAMES, Picture, not_drawn
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.report.numbers import significant
from lodim.text import counted

# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "level": "class",
    "estimate": "mean slope",
    "estimate_abs": "mean absolute slope",
    "std_estimate": "mean slope per SD",
    "std_estimate_abs": "mean absolute slope per SD",
}


def words(fit):
    """The model in a few sentences."""
    m = len(fit.learners())
    return [
        f"The score of {fit.design.response.name} is a sum of {counted(m, 'learner')}, each a bent "
        "plane of the features, fitted one after the other (gradient boosting mapping). It "
        f"explains {100 * fit.dev_ratio:.1f} % of the deviance of the training rows.",
        f"The penalty lambda is {significant(fit.settings.lambda_)}: a larger one flattens the "
        "planes. Near any row the model is linear, so that each feature has a slope there; the "
        "bars below show its mean size over the training rows, per standard deviation.",
    ]


def pictures(fit, data):
    """Mean effects; and the embedding of the rows, where there are data."""
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["std_estimate_abs"] > 0]
    terms = terms.sort_values("std_estimate_abs", ascending=False, kind="stable")
    terms = terms.rename(columns=LABELS)
    size = LABELS["std_estimate_abs"]
    color = "class" if "class" in terms else ""
    note = "Mean absolute slope of the score, per standard deviation (SD) of a feature."
    note += not_drawn(terms, MOST_NAMES)
    style = {"color": color, "hover": [*LABELS.values()][2:5]}
    found = [
        Picture("Mean effects", "bars", terms.head(MOST_NAMES), size, "feature", note, **style)
    ]
    if data is None or (fit.levels is not None and len(fit.levels) > 2) or fit.settings.m < 2:
        return found
    rows = thinned(data, MOST_POINTS)
    embedded = fit.predict(rows, "embedding")
    if embedded.shape[1] < 2:  # learners that add nothing are left out
        return found
    new = {f"embedding {name}": embedded[name] for name in embedded.columns[:2]}
    frame, (row, x, y, fitted) = with_columns(rows, new | {"fitted": fit.predict(rows)})
    note = "Rows that lie together here are alike in what matters for the response."
    style = {"color": fitted, "hover": (row, *rows.columns[:MOST_HOVER])}
    return [*found, Picture("Embedding", "points", frame, x, y, note, **style)]
