"""Printed listing, summary and report page of a CostnetFit."""

import numpy as np
import pandas as pd

from lodim.design.frame import in_pandas
from lodim.fitting.fit import ARRAY
from lodim.models.costnet import frontier_models
from lodim.models.costnet.frontier_models import PENALIZED
from lodim.page import MOST_NAMES, Picture
from lodim.prices.build import unused_prices
from lodim.report import phrases
from lodim.report.numbers import aligned, blank_if_missing
from lodim.report.tables import Report, Table, room_beside, significant
from lodim.text import counted, shorten

WIDTH_OF_NAMES = 34  # characters of a cell of names
SEPARATED = "coefficients are infinite in theory, so their size has no meaning"
CRITERIA_IN_WORDS = {
    "cv": "the loss of held-out rows",
    "deviance": "the deviance",
    "aic": "AIC",
    "hq": "the criterion of Hannan and Quinn",
    "bic": "BIC",
    "ebic": "extended BIC, which adds a penalty for each coefficient,",
}


def listing(fit):
    """Return the lines and the table that a printed fit shows, in the style of glmnet."""
    by = " by a function" if _by_function(fit) else ""
    one = ", one source of each series" if _has_series(fit) else ""
    lines = [
        f"Family: {fit.family.label} ({fit.family.link} link){phrases.levels(fit)}",
        f"{phrases.rows(fit)}, {counted(_n_priced(fit), 'priced item')}{by}, total price "
        f"{significant(fit.total)}{one}",
    ]
    model = fit.step
    if model.rule == PENALIZED:
        lines.append(f"Penalized model of lambda {significant(model.lambda_)}, not refitted")
    else:
        lines.append(
            f"Budget: {_budget(fit)}{_rule_of_choice(fit)}; * is the model that predict() uses, of "
            f"price {significant(model.cost)}"
        )
    lines += phrases.monotone(fit)
    if fit.separated:
        lines.append(f"Classes are separated: {SEPARATED}")
    if not fit.converged:
        lines.append("Warning: the solver did not converge at every penalty; see summary()")
    frame = frontier_models.prices(fit, frontier_models.shown_models(fit))
    table, formats = _models(frame, ["Df", "Cost", "%Dev", "%CV", "Lambda", "Rule"])
    return lines, Table("", table, formats | {"Lambda": _lambda}, keep=_which_to_print(frame))


def summary(fit, full):
    tables = (*_prices(fit), *_purchases(fit), _coefficients(fit, full))
    s, m = fit.settings, fit.step
    header = phrases.header(
        fit,
        ("Features", str(len(fit.design.names))),
        ("Link", fit.family.link),
        ("Priced items", str(_n_priced(fit))),
        ("Rule", m.rule),
        ("Total price", significant(fit.total)),
        ("Lambda", _lambda(m.lambda_) or "none"),
        ("Budget", _budget(fit)),
        ("Df", str(m.df)),
        ("Cost of the model", significant(m.cost)),
        ("Mean deviance", significant(m.deviance)),
        ("Mean null deviance", significant(fit.null_deviance)),
    )
    shares = (("L1 ratio", s.l1_ratio), ("Relax", m.relax if m.number else 1.0))
    below = ((name, significant(share)) for name, share in shares if share < 1)
    return Report("Costnet Results", (*header, *below), tables, _notes(fit), full)


def _prices(fit):
    """Return a tuple of one Table, the best model at each price; () for a penalized model."""
    if not fit.step.number:
        return ()
    frame = frontier_models.prices(fit)
    table, formats = _models(frame, ["Cost", "Df", "%Dev", "%CV", "Rule"])
    costs = dict(zip(frame["cost"], aligned(frame["cost"]), strict=True))
    formats |= {"Cost": costs.get, "Df": "d"}
    room = room_beside(Table("", table, formats))
    bought = list(frontier_models.changes(fit, frontier_models.listed_models(fit)))
    every = [name for pair in bought for names in pair for name in names]
    table["Purchases"] = [_changes(*names, room, every) for names in bought]
    explained = tuple(_column_notes(fit, table))
    return (Table("Frontier", table, formats, explained, keep=_which_to_print(frame)),)


def _models(frame, names):
    """Return a table of models to print, and the formats of its percentages, {column: format}.

    frame : one row per model
    names : columns to print; "%CV" only if it is known"""
    pairs = zip(frame["rule"], frame["relax"], strict=True)
    rules = [f"{rule} r={relax:g}" if relax < 1.0 else rule for rule, relax in pairs]
    table = frame.rename(columns={"df": "Df", "cost": "Cost", "lambda_": "Lambda"}).assign(
        **{
            "%Dev": 100.0 * frame["dev_ratio"],
            "%CV": (100.0 * frame["dev_ratio_held_out"]).round(2) + 0.0,
            "Rule": rules,
        }
    )
    chosen = zip(frame.index, frame["chosen"], strict=True)
    labels = [f"{k} *" if on and len(frame) > 1 else str(k) for k, on in chosen]
    known = [name for name in names if not (name == "%CV" and table["%CV"].isna().all())]
    formats = {name: ".2f" for name in ("%Dev", "%CV") if name in known}
    return table[known].set_axis(labels, axis=0), formats


def _column_notes(fit, table):
    what = "variance" if fit.family.name == "gaussian" else "deviance"
    by = CRITERIA_IN_WORDS.get(fit.settings.criterion, fit.settings.criterion.upper())
    yield (
        f"Df: columns with a coefficient; %Dev: share of the {what} of the training rows "
        f"explained; each model is better than all cheaper models by {by}; Rule: search rule "
        "that found the model; Purchases: items added (+) and dropped (-) since the row above; "
        "*: model used by predict()."
    )
    if "%CV" in table:
        yield f"%CV: share of the {what} explained in rows held out by cross-validation."
    if (fit.estimates.frontier.relax < 1.0).any():
        yield (
            "r: relax, share of the refitted coefficients in the mean with the penalized ones; "
            "1 if not shown."
        )


def _changes(new, dropped, room, every=()):
    """Return new and dropped purchases as text, "+ age, sex - weight", up to `room` characters.

    every : names from which a shortened name must differ"""
    parts = [(sign, names) for sign, names in (("+", new), ("-", dropped)) if names]
    text = " ".join(f"{sign} {', '.join(names)}" for sign, names in parts)
    if len(text) <= room:
        return text
    each = (room + 1) // len(parts) - 3
    return " ".join(f"{sign} {_some_names(names, each, every)}" for sign, names in parts)


def _some_names(names, room, every=()):
    """Return names as text of at most `room` characters, such as "age, sex and 3 more".

    every : names from which a shortened name must differ"""
    for shown in range(len(names), 0, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        text = ", ".join(names[:shown]) + more
        if len(text) <= room:
            return text
    each = (room - len(more)) // shown
    if each < 8:
        return f"{len(names)} more"
    every = list(dict.fromkeys([*every, *names]))
    return shorten(every, each)[every.index(names[0])] + more


def _purchases(fit):
    """Return the table of items that the model buys, in a tuple; () if it buys none."""
    frame = frontier_models.bought(fit)
    if frame.empty:
        return ()
    table = pd.DataFrame({"Price": frame["price"]})
    if not frame["in_model"].all():
        table["In the model"] = np.where(frame["in_model"], "yes", "no")
    if frame["needed_by"].any():
        named = frame["needed_by"].str.split(", ")
        every = [name for names in named for name in names]
        table["Needed by"] = [_some_names(names, WIDTH_OF_NAMES, every) for names in named]
    if "serves" in frame and frame["serves"].any():
        table["Serves as"] = frame["serves"]
    table.index = list(frame.index)
    note = f"Together {significant(fit.step.cost)}, each item paid once."
    if _by_function(fit):
        note = f"Price of each item by itself; together they cost {significant(fit.step.cost)}."
    return (Table("Items to buy", table, {}, (note,)),)


def _coefficients(fit, full):
    """Return the table of coefficients, the largest first; all of them if `full`, else 30."""
    frame = frontier_models.terms(fit)
    intercept = frame["std_estimate"].isna()
    size = frame["std_estimate"].abs()
    order = size[size > 0].sort_values(ascending=False, kind="stable").index
    largest = order if full else order[:30]
    shown = pd.concat([frame[intercept], frame.loc[largest]])
    columns, sd = {"Estimate": shown["estimate"]}, fit.arguments["standardize"]
    table = pd.DataFrame(columns | ({"Per SD": shown["std_estimate"]} if sd else {}))
    table = table.set_axis(phrases.term_labels(shown), axis=0).rename_axis(None)
    per = f"per unit of the feature{', and per standard deviation' * sd}, largest first."
    notes = [f"In units of {phrases.scale(fit)}: {per}"]
    zeros = int((size == 0).sum())
    if zeros:
        notes.append(f"{zeros} {'coefficient is' if zeros == 1 else 'coefficients are'} zero.")
    if len(order) > len(largest):
        rest = counted(len(order) - len(largest), "smaller coefficient")
        notes.append(f"Not shown: {rest}; see coef().")
    formats = dict.fromkeys(table, blank_if_missing)
    return Table("Coefficients", table, formats, (" ".join(notes),), keep=[True] * len(table))


def _notes(fit):
    path, d = fit.estimates.path, fit.design
    failed, n = np.count_nonzero(~path.converged), len(path.converged)
    ended = f"NOT converged at {failed} of {n} penalties" if failed else "converged"
    notes = [_coefficients_note(fit)]
    notes += [f"{line}: their coefficients have one sign." for line in phrases.monotone(fit)]
    if fit.separated:
        notes.append(f"The classes of the training rows are separated by the model: {SEPARATED}.")
    gap = significant(float(path.gap.max()), 2)
    walked = f"{len(path.lambdas)} {'penalty' if len(path.lambdas) == 1 else 'penalties'}"
    notes.append(
        f"Penalized path: {walked}, {ended}; largest duality gap {gap}, "
        f"{int(path.n_iter.sum())} iterations."
    )
    notes += phrases.choice(fit, _rule_of_choice(fit))
    if fit.limit < np.inf:
        notes.append(f"Models were searched up to a price of {significant(fit.limit)}.")
    if _has_series(fit):
        notes.append("Total price: with the most expensive source of each series.")
    left = unused_prices(fit.settings.network, fit.settings)
    if left:
        notes.append(f"Items with a price that the formula does not use: {_some_names(left, 200)}.")
    notes += phrases.not_standardized(fit) + phrases.without_effect(d)
    return tuple(notes)


def _coefficients_note(fit):
    if not fit.step.df:
        but = ", apart from the offset" if fit.design.offset_given else ""
        return f"The model has no feature: it predicts the same for every row{but}."
    if fit.step.rule == PENALIZED:
        return "The coefficients are shrunken by the penalty, not refitted."
    if fit.step.relax < 1.0:
        share = significant(fit.step.relax)
        blend = f", as a mean in which refitted coefficients have weight {share}"
        blend = blend if fit.step.relax > 0.0 else ""
        return (
            "The terms were selected by looking at the response: the coefficients are shrunken "
            f"by the penalty{blend}, so p-values would not be valid."
        )
    return (
        "The terms were selected by looking at the response: the coefficients are refitted "
        "without a penalty, so they are too large on average, and p-values would not be valid. For "
        "the performance on new rows see held-out rows or cv()."
    )


# Parts of the above ------------------------------------------------------------------------------


def _which_to_print(frame):
    M = len(frame)
    keep = np.ones(M, bool)
    if M > 30:
        keep[10:-5] = False
        for k in np.flatnonzero(frame["chosen"]):
            keep[max(0, k - 4) : k + 5] = True
    return keep


def _lambda(value):
    return "" if np.isnan(value) else significant(value)


def _n_priced(fit):
    network = fit.settings.network
    return len({int(b) for b in network.base[network.cost > 0]})


def _has_series(fit):
    return bool((fit.settings.network.series >= 0).any())


def _by_function(fit):
    return fit.arguments["costs"] == ARRAY


def _rule_of_choice(fit):
    """Return text on how held-out rows chose the model; empty if they did not."""
    if "budget" not in fit.chosen or fit.limit < np.inf:
        return ""
    if fit.settings.costs is None and not _by_function(fit):
        return ", of lowest held-out loss"
    return ", cheapest model within one SE of the lowest held-out loss"


def _budget(fit):
    budget = fit.settings.budget
    if budget is None or budget == np.inf:
        return "none"
    return significant(budget) + phrases.by_cross_validation(fit, "budget")


TRAINING, HELD_OUT = "% deviance explained", "% deviance explained, held out"
# Headings of tidy() in words.
LABELS = {
    "term": "feature",
    "level": "class",
    "estimate": "coefficient",
}


def words(fit):
    kind = {"identity": "linear", "log": "log-linear"}.get(fit.family.link, "logistic")
    model = (
        f"A {kind} model of {fit.design.response.name} with {counted(fit.df, 'feature')}, whose "
        f"measurement costs {significant(fit.cost)} in all. It explains "
        f"{100 * fit.dev_ratio:.1f}% of the deviance of the training rows."
    )
    if fit.estimates.frontier is None:
        return [model, "It was fitted with one penalty, so there is no list of models by price."]
    return [
        model,
        "It is one of a list: for each price the best model that was found. The list below shows "
        "what a larger or a smaller budget would buy.",
    ]


def pictures(fit, data):
    """Return pictures of the frontier (best models by price), if any, and of the coefficients."""
    found = [] if fit.estimates.frontier is None else [_frontier(fit)]
    tidy = in_pandas(fit.tidy)()
    terms = tidy[tidy["chosen"].astype(bool) & (tidy["std_estimate"].fillna(0) != 0)]
    x = f"coefficient {phrases.per(fit)}"
    terms = pd.DataFrame(terms).rename(columns=LABELS | {"std_estimate": x})
    color = "class" if "class" in terms else ""
    if len(terms):
        note = f"Coefficients {phrases.per(fit, 'standard deviation (SD)')} of the feature."
        note += f" The first {MOST_NAMES} of {len(terms)}." * (len(terms) > MOST_NAMES)
        style = {"color": color, "hover": ("coefficient",), "note": note}
        found.append(Picture("Coefficients", "bars", terms.head(MOST_NAMES), x, "feature", **style))
    return found


def _frontier(fit):
    prices = fit.prices().reset_index()
    frame = pd.DataFrame(
        {
            "cost": prices["cost"],
            TRAINING: 100.0 * prices["dev_ratio"],
            HELD_OUT: 100.0 * prices["dev_ratio_held_out"],
            "model": np.where(prices["chosen"], "this model", "other models"),
            "features": prices["df"],
            "bought": prices["new"].map(str),
            "dropped": prices["dropped"].map(str),
        }
    )
    y = HELD_OUT if frame[HELD_OUT].notna().any() else TRAINING
    note = "Share of the deviance that is explained, for what it costs to measure."
    hover = ("features", "bought", "dropped", TRAINING)
    return Picture("Frontier", "points", frame, "cost", y, color="model", hover=hover, note=note)
