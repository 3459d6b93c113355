"""What a page says and shows of a ripr fit."""

from lodim.page.picture import Picture
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned
from lodim.text import join_words

MOST_VIEWS = 4


def words(fit):
    """The model in a few sentences."""
    views = list(dict.fromkeys(fit.tidy()["term"]))
    some = join_words(views[:3]) if len(views) <= 3 else f"{'; '.join(views[:3])} and others"
    return [
        f"{len(views)} views, each of at most three features, answer for all rows (informative "
        f"projections): {some}.",
        "In a view the training rows nearest to a row answer for it; the pictures of the views are "
        "the whole model.",
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
    rows = thinned(data, MOST_POINTS).assign(row=lambda d: d.index.astype(str))
    response = None if fit.design.response is None else fit.design.response.name
    color = response if response in rows else ""
    for names in fit.view_features[:MOST_VIEWS]:
        if len(names) >= 2 and {*names[:2]} <= {*rows.columns}:
            found.append(
                Picture(f"View: {', '.join(names)}", "points", rows, names[0], names[1],
                        color=color, hover=("row", *list(rows.columns)[:MOST_HOVER]))
            )  # fmt: skip
    return found
