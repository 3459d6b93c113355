"""What a fingerprint is taken of: the saved file, the answers and the printed text of a fit."""

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from fingerprint_frames import elsewhere, frame_of
from matplotlib import pyplot

import lodim as ld
from lodim.fitting import storage

SOME = 2000  # rows for which all types are predicted

matplotlib.use("Agg")


@dataclass
class Result:
    """What a case computed: answers, printed text, content of the saved file, and deviance."""

    answers: Any
    printed: Any = ""
    stored: Any = ()
    deviance: float | None = None


def answered(call):
    """Return what a call returns, or the kind of the error by which lodim refuses it."""
    try:
        return call()
    except ld.LodimError as error:
        return type(error).__name__


def fitted(model, formula, frame, arguments, show=False, place=None):
    """Return the Result of a fit: all predictions, tables and text, from memory or a place."""
    df = frame_of(frame)
    arguments = {k: v(df) if callable(v) else v for k, v in arguments.items()}
    arguments = ({} if model == "glm" else {"threads": 1}) | arguments
    offset = {"offset": arguments["offset"]} if np.ndim(arguments.get("offset")) else {}
    with tempfile.TemporaryDirectory() as folder:
        data = df if place is None else elsewhere(place, df, folder)
        fit = getattr(ld, model)(formula, data, **arguments)
        stored, again = saved(fit, df, offset, Path(folder) / "fit")
        answers = predictions(fit, df, data, offset, Path(folder) / "out.parquet")
    measured = answered(partial(fit.evaluate, df, **offset))
    answers += [again, measured, fit.tidy(), fit.glance()]
    answers += [answered(partial(fit.augment, df, **offset))]
    answers += [answered(call) for call in (*FURTHER[model](fit, df), *code(fit))]
    printed = [str(fit), str(fit.summary(full=True)), fit.summary()._repr_html_()]
    if show:
        answers.append(plots(fit, df))
        printed.append(page(fit, df))
    known = not isinstance(measured, str) and "deviance" in measured
    deviance = float(np.mean(np.asarray(measured["deviance"]))) if known else None
    return Result(answers, printed, stored, deviance)


def saved(fit, df, offset, path):
    """Return the contents of a fit's file, and predictions of the fit that is read from it."""
    try:
        fit.save(path)
    except ld.StoreError:  # an estimator of scikit-learn is code, which no file holds
        return (), None
    return storage.read(path)[1], answered(lambda: ld.load(path).predict(df, **offset))


def predictions(fit, df, data, offset, path):
    """Return predictions of all rows, written to a file where `data` is one, and of all types."""
    if isinstance(data, str):
        fit.predict(data, output=path)
        whole = pd.read_parquet(path)
    else:
        whole = fit.predict(data, **offset)
    types = getattr(fit, "types", ("response", "class"))
    some = {name: value[:SOME] for name, value in offset.items()}
    return [whole, *(answered(partial(fit.predict, df[:SOME], type, **some)) for type in types)]


# What only one model has: calls whose answers join those of all fits ---------------------------


def of_gbmap(fit, df):
    """Return calls of what only gbmap has."""
    kinds = ("difference", "distance")
    return (
        fit.learners,
        fit.projections,
        fit.coef,
        lambda: fit.staged(df),
        lambda: fit.first(1).predict(df),
        lambda: fit.regions(df[:50]),
        lambda: fit.distance(df[:20]),
        lambda: fit.distance(df[:5], df[20:25], kind="path"),
        lambda: fit.neighbours(df[:20], 3),
        lambda: fit.predict(df.iloc[::-1], clip=True),
        lambda: [fit.drift(df[:30], kind=kind) for kind in kinds],
        lambda: [fit.drift_threshold(kind=kind) for kind in kinds],
    )


def of_proset(fit, df):
    """Return calls of what only proset has."""

    def explained(**arguments):
        found = fit.explain(df[2:3], **arguments)
        return [found.frame, found.nearest, found.prediction, str(found), found._repr_html_()]

    def sheets():
        with tempfile.TemporaryDirectory() as folder:
            fit.to_excel(Path(folder) / "fit.xlsx", df[2:3])
            tables = pd.read_excel(Path(folder) / "fit.xlsx", sheet_name=None, header=None)
        return list(tables.values())

    return (
        fit.batches,
        fit.feature_weights,
        lambda: fit.export(df),
        lambda: fit.reference(df),
        lambda: fit.familiarity(df),
        lambda: fit.familiarity(df, quantile=True),
        lambda: fit.shrink().predict(df),
        explained,
        lambda: explained(train=df, features=2),
        lambda: fit.shapley(df[:4], n_permutations=20),
        lambda: fit.density(df[:5], np.linspace(-5.0, 5.0, 7)),
        lambda: fit.predict(df, "interval", level=0.5),
        lambda: fit.predict(df, "quantile", quantiles=[0.1, 0.7]),
        sheets,
    )


def of_melm(fit, df):
    """Return calls of what only melm has."""
    return fit.pairs, fit.starts, fit.coef, lambda: fit.axes


def of_ripr(fit, df):
    """Return calls of what only ripr has; fits of several responses have fewer."""
    if isinstance(fit, ld.RiprFits):
        own = fit[fit.tidy().iloc[0, 0]]
        return lambda: own.votes(df[:30]), lambda: str(own.explain(df[2:3]))

    def explained(row):
        found = fit.explain(df[row : row + 1], k=3)
        return [found.views, found.neighbours, str(found)]

    return (
        fit.assignment,
        fit.clusters,
        lambda: fit.votes(df[:30]),
        lambda: explained(2),
        lambda: explained(5),
    )


def of_glm(fit, df):
    """Return calls of what only glm has."""
    return (
        fit.covariance,
        fit.coef,
        fit.anova,
        lambda: fit.anova(data=df),
        lambda: fit.drop1(data=df),
        lambda: fit.predict(df[:SOME], "interval", level=0.8),
        lambda: fit.predict(df, rank_deficient="zero"),
    )


def of_costnet(fit, df):
    """Return calls of what only costnet has."""
    return (
        fit.path,
        fit.prices,
        fit.bought,
        fit.coef,
        lambda: fit.staged(df),
        lambda: fit.at(budget=fit.cost / 2.0).predict(df),
        lambda: fit.at(fit.cost / 2.0).bought(),
        lambda: fit.at(fit.cost).evaluate(df),
        lambda: fit.at(lambda_=0.01).coef(),
        lambda: fit.at(lambda_=0.01).augment(df),
    )


FURTHER = {
    "gbmap": of_gbmap,
    "proset": of_proset,
    "melm": of_melm,
    "ripr": of_ripr,
    "glm": of_glm,
    "costnet": of_costnet,
}


def code(fit):
    """Return calls that write a fit as Python and SQL."""
    if isinstance(fit, ld.RiprFits):
        return ()
    return partial(fit.to_python, new_levels="missing"), fit.to_sql, partial(fit.to_sql, "postgres")


def page(fit, df):
    """Return the page that report() writes."""
    with tempfile.TemporaryDirectory() as folder:
        fit.report(Path(folder) / "page.html", df)
        return (Path(folder) / "page.html").read_text()


# Plots -----------------------------------------------------------------------------------------


def kinds_of_plots(fit, df):
    """Return the arguments of each plot of a fit to draw."""
    row = {"data": df[:40], "row": 2}
    return {
        "gbmap": ("loss", "effects", "embedding", ("local", row), ("drift", {"data": df})),
        "proset": (
            *("weights", "map", "scatter", "surface", ("shapley", row)),
            *(("map", row), ("scatter", row | {"named": 2})),
        ),
        "melm": (
            *("view", "loadings", "starts", ("view", {"dimensions": [1]})),
            ("view", {"data": df, "arrows": "structure", "top": 3}),
        ),
        "ripr": ("data", "shares", "objective", ("data", {"row": df[2:3]}), ("data", {"data": df})),
        "glm": ("coefficients", "residuals", "qq", "leverage"),
        "costnet": ("cost", "path", "graph", ("cost", {"log": True})),
    }[fit.name]


def plots(fit, df):
    """Return the coordinates in each plot of a fit, or the kind of error by which it is refused."""
    found = []
    for asked in kinds_of_plots(fit, df):
        kind, arguments = (asked, {}) if isinstance(asked, str) else asked
        axes = answered(partial(fit.plot, kind, **arguments))
        found.append(axes if isinstance(axes, str) else coordinates(axes))
        pyplot.close("all")
    return found


def coordinates(axes):
    """Return the coordinates of the lines, points and bars in one or several Axes."""
    found = []
    for artist in (child for ax in np.ravel(axes) for child in ax.get_children()):
        for name in ("get_xydata", "get_offsets", "get_xy"):
            if hasattr(artist, name):
                numbers = np.ma.asarray(getattr(artist, name)(), float)
                found.append(np.ma.filled(numbers, np.nan))
    return found
