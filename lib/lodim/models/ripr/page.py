"""What a page says and shows of a ripr fit."""

from lodim.page.picture import Picture
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns
from lodim.text import join_words

MOST_VIEWS = 4


def words(fit):
    """The model in a few sentences."""
    views = list(dict.fromkeys(fit.tidy()["term"]))
    n = len(views)
    number = "One view answers" if n == 1 else f"{n} views answer"
    some = join_words(views[:3]) if len(views) <= 3 else f"{'; '.join(views[:3])} and others"
    return [
        f"{number} for all rows, by at most three features each (informative projections): {some}.",
        "In a view the training rows nearest to a row answer for it; the pictures show the first "
        "two features of a view.",
    ]


def pictures(fit, data):
    """How much each view says, and the first views with the rows of the data."""
    tidy = fit.tidy()
    found = [
        Picture("Views", "bars", tidy, "mass", "term", hover=("estimate", "error"),
                note="Share of the rows, or of the votes, that a view stands for."),
    ]  # fmt: skip
    if data is None:
        return found
    rows, clusters = thinned(data, MOST_POINTS), fit.design.response is None
    new = {"cluster": fit.predict(rows)} if clusters else {}
    rows, (row, *color) = with_columns(rows, new)
    if not clusters:
        color = [name for name in [fit.design.response.name] if name in data]
    for names in fit.view_features[:MOST_VIEWS]:
        if len(names) >= 2 and {*names[:2]} <= {*data.columns}:
            found.append(
                Picture(f"View: {', '.join(names)}", "points", rows, names[0], names[1],
                        color="".join(color), hover=(row, *data.columns[:MOST_HOVER]))
            )  # fmt: skip
    return found
