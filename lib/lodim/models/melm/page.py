"""Report page of a melm fit."""

from lodim.design.frame import in_pandas
from lodim.page.picture import MOST_NAMES, Picture, not_drawn
from lodim.page.sections import MOST_HOVER, MOST_POINTS, thinned, with_columns


def words(fit):
    """The model in a few sentences."""
    glance = in_pandas(fit.glance)().iloc[0]
    found = [
        f"The rows are seen in {glance['k']} directions, those in which the densities of the "
        f"classes of {fit.design.response.name} overlap least (maximum entropy linear manifold)."
        if fit.levels is not None
        else f"The rows are seen in {glance['k']} directions (maximum entropy linear manifold)."
    ]
    if "held_balanced_accuracy" in glance:
        found.append(
            f"Rows that a fold held out were given the right class in "
            f"{100 * glance['held_balanced_accuracy']:.1f} % of the cases, each class counting "
            "alike."
        )
    return found


def pictures(fit, data):
    """The view, and the loadings of its axes."""
    tidy = in_pandas(fit.tidy)()
    largest = tidy.groupby("term")["std_estimate"].agg(lambda w: w.abs().max())
    kept = largest.sort_values(ascending=False, kind="stable").index[:MOST_NAMES]
    named = tidy.rename(
        columns={"term": "feature", "estimate": "loading", "std_estimate": "loading per SD"}
    )
    axes = list(dict.fromkeys(tidy["dimension"]))
    note = "Change of the coordinate per standard deviation (SD) of the feature."
    note += not_drawn(largest, MOST_NAMES)
    found = []
    for axis in axes[:2]:
        rows = named[(tidy["dimension"] == axis) & tidy["term"].isin(kept)]
        style = {"note": note, "hover": ("loading", "correlation")}
        title, x = f"Loadings of {axis}", "loading per SD"
        found.append(Picture(title, "bars", rows, x, "feature", **style))
    if data is None or len(axes) < 2:
        return found
    rows = thinned(data, MOST_POINTS)
    seen = fit.predict(rows, "projection")
    new = {f"view {name}": seen[name] for name in seen.columns[:2]}
    frame, (row, x, y) = with_columns(rows, new)
    name = None if fit.levels is None else fit.design.response.name
    color = name if name in rows else ""
    hover = (row, *rows.columns[:MOST_HOVER])
    view = Picture("View", "points", frame, x, y, color=color, hover=hover)
    return [view, *found]
