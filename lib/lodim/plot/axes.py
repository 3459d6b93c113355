"""Plots, each on Axes, its own if none is given; `lettering` too imports matplotlib, no other."""

from inspect import signature

import numpy as np
import pandas as pd

from lodim.checks import one_of, whole
from lodim.errors import ArgumentError
from lodim.plot.lettering import legend, literal
from lodim.report.phrases import brief
from lodim.report.tables import significant

BLUE, RED, GREY = "#1f6fb4", "#c8442c", "#8a8a8a"
COUNTS = {"top", "most", "named", "batch", "k"}  # arguments of plots that count
LONGEST = 32  # characters of a name at the end of a line, and in a legend


def _axes(ax, size=(7.0, 4.5)):
    if ax is not None:
        return ax
    from matplotlib.pyplot import subplots

    return subplots(figsize=size, layout="constrained")[1]


def draw(kinds, kind, fit, ax, arguments):
    """Draw a kind of plot of a fit, the first of `kinds` by default, and return the Axes."""
    kind = next(iter(kinds)) if kind is None else kind
    one_of("kind", kind, kinds)
    for name in COUNTS & arguments.keys():
        arguments = arguments | {name: whole(name, arguments[name], least=int(name != "named"))}
    try:
        signature(kinds[kind]).bind(fit, ax, **arguments)
    except TypeError as error:
        raise ArgumentError(f"plot of kind {kind!r}: {error}") from None
    return literal(kinds[kind])(fit, ax, **arguments)


def one_row(data, row):
    """The row of a frame at a position, as a frame."""
    whole = isinstance(row, int | np.integer) and not isinstance(row, bool)
    if not (isinstance(data, pd.DataFrame) and whole) or not -len(data) <= row < len(data):
        raise ArgumentError(f"data must be a pandas DataFrame with a row {row!r:.80}")
    return data.iloc[[row]]


def _tidy(ax):
    ax.spines[["top", "right"]].set_visible(False)
    return ax


@literal
def path(path, ax=None, top=10):
    """Estimates against log lambda, df above, names at the right end.

    Per standard deviation of the feature, where that means something.
    """
    frame, top = path.tidy(), whole("top", top)
    keys = list(path.fits[0].coef().index.names)
    standard = "std_estimate" in frame
    wide = frame.pivot_table(
        index=path.penalty, columns=keys, values="std_estimate" if standard else "estimate",
        sort=False, observed=True,
    ).sort_index().fillna(0.0)  # fmt: skip
    if wide.empty:
        raise ArgumentError("the path has no features to draw")
    above = ("Df", path.lambdas, [str(df) for df in path.glance()["df"]])
    name = path.penalty.rstrip("_")
    ylabel = path.fits[0].estimate_name + " per SD" * standard
    return against_log(wide, name, ylabel, above, ax, top)


def against_log(wide, name, ylabel, above, ax=None, top=10):
    """Lines against the log of a penalty, the `top` largest named at the end of the smallest.

    wide : frame with a row a penalty, increasing, and a column a line
    above : label of the top axis, penalties, and a text for each
    """
    ax = _axes(ax)
    if not (wide.index > 0).all():
        raise ArgumentError("a penalty of 0 has no place on a log axis; leave it out of lambdas")
    x = np.log(wide.index.to_numpy())
    size = wide.iloc[0].abs().sort_values(ascending=False)
    named = list(size[size > 0].index[:top])
    ends = {}
    for column in wide.columns:
        on = column in named
        (line,) = ax.plot(x, wide[column], lw=1.5 if on else 0.7, color=None if on else GREY,
                          alpha=1.0 if on else 0.5)  # fmt: skip
        if on:
            ends[column] = (wide[column].iloc[0], line.get_color())
    ax.axhline(0.0, color="black", lw=0.5)
    ax.invert_xaxis()
    ax.set_xlabel(f"log({name})")
    ax.set_ylabel(ylabel)
    _name_ends(ax, x[0], ends)
    _axis_above(ax, above[0], np.log(above[1]), above[2])
    return ax


def _name_ends(ax, x, ends):
    """Names beside the line ends, moved apart where they would overlap."""
    low, high = ax.get_ylim()
    order = sorted(ends, key=lambda c: ends[c][0])
    heights = _apart(np.array([ends[c][0] for c in order]), 0.045 * (high - low))
    labels = [name if isinstance(name, str) else " ".join(map(str, name)) for name in order]
    for name, label, height in zip(order, brief(labels, LONGEST), heights, strict=True):
        ax.annotate(
            label, (x, ends[name][0]), xytext=(1.02, height), fontsize=8, va="center",
            textcoords=ax.get_yaxis_transform(), color=ends[name][1],
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": GREY}, annotation_clip=False,
        )  # fmt: skip
    _tidy(ax)


def _apart(heights, gap):
    """Increasing heights at least `gap` apart, groups centred where they were."""
    groups = [[h, 1] for h in heights]  # centre and size of runs of labels that touch
    merged = []
    for group in groups:
        merged.append(group)
        while len(merged) > 1:
            (c0, n0), (c1, n1) = merged[-2:]
            if c1 - c0 >= 0.5 * gap * (n0 + n1):
                break
            merged[-2:] = [[(c0 * n0 + c1 * n1) / (n0 + n1), n0 + n1]]
    return np.concatenate([[]] + [c + gap * (np.arange(n) - 0.5 * (n - 1)) for c, n in merged])


def _axis_above(ax, label, x, texts):
    """An axis on top with the texts of the places x that are nearest to the ticks below."""
    top = ax.secondary_xaxis("top")
    ticks = [t for t in ax.get_xticks() if x.min() <= t <= x.max()]
    top.set_xticks(ticks, [texts[int(np.argmin(np.abs(x - t)))] for t in ticks])
    top.set_xlabel(label)


@literal
def cv_curve(cv, ax=None):
    """Held-out loss with one standard error against the grid's first setting."""
    ax = _axes(ax)
    name = cv.grid[0]
    frame = cv.frame.dropna(subset=[name])
    if len(frame) < len(cv.frame):
        styles = {cv.index_1se: ":", cv.index_min: "--"}
        _own_choice(ax, cv.frame[cv.frame[name].isna()], name, styles)
    numeric = pd.api.types.is_numeric_dtype(frame[name])
    penalty = name in cv.penalties and numeric and (frame[name] > 0).all()
    others = [c for c in cv.grid[1:]]
    series = list(frame.groupby(others, sort=False)) if others else [((), frame)]
    for k, (values, part) in enumerate(series):
        x = np.log(part[name]) if penalty else part[name] if numeric else part[name].astype(str)
        if numeric and others:  # side by side: the bars of one would hide those of another
            x = x + 0.5 * _least_gap(x) * (k - 0.5 * (len(series) - 1)) / len(series)
        label = ", ".join(f"{n}={significant(v)}" for n, v in zip(others, values, strict=True))
        line = ax.errorbar(x, part["mean"], part["se"], fmt="o", ms=4, lw=0.8, capsize=2,
                           color=None if others else RED, ecolor=None if others else GREY,
                           label=label or None)  # fmt: skip
        if numeric and not others and not penalty:
            ax.plot(x, part["mean"], lw=0.8, alpha=0.6, color=RED)
        if others and numeric:
            _join_series(ax, x, part["mean"], line[0].get_color(), (cv.index_min, cv.index_1se))
    for row, style in ((cv.index_min, "--"), (cv.index_1se, ":")):
        if row not in frame.index:
            continue
        value = frame[name][row]
        where = np.log(value) if penalty else value if numeric else str(value)
        ax.axvline(where, color="black", lw=0.8, ls=style)
    if others:
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if penalty:
        ax.invert_xaxis()
        if not others and cv.stages in frame:
            _stage_axis(ax, np.log(frame[name].to_numpy()), frame[cv.stages].to_numpy(), cv.stages)
    ax.set_xlabel(f"log({name.rstrip('_')})" if penalty else name)
    ax.set_ylabel(f"held-out {cv.loss}")
    ax.set_title("dashed: least loss; dotted: simplest within one standard error", fontsize=9)
    return _tidy(ax)


def _own_choice(ax, frame, name, styles):
    """Held-out loss where a setting is left to the model, which has no place on the axis."""
    for row, mean, se in zip(frame.index, frame["mean"], frame["se"], strict=True):
        ax.axhspan(mean - se, mean + se, color=GREY, alpha=0.2, lw=0)
        label = f"{name.rstrip('_')} left to the model" if row == frame.index[0] else None
        color = "black" if row in styles else GREY
        ax.axhline(mean, color=color, lw=0.8, ls=styles.get(row, "-"), label=label)
    ax.legend(frameon=False, fontsize=8)


def _join_series(ax, x, mean, color, chosen):
    """A line through the points of a series, and rings around those of the rows `chosen`."""
    ax.plot(x, mean, lw=0.8, alpha=0.6, color=color)
    ringed = [row for row in chosen if row in mean.index]
    ax.scatter(x[ringed], mean[ringed], s=90, facecolor="none", edgecolor="black")


def _least_gap(x):
    """Distance of the two nearest places; zero of a single one."""
    places = np.unique(x)
    return np.diff(places).min() if len(places) > 1 else 0.0


def _stage_axis(ax, x, stages, name):
    top = ax.secondary_xaxis("top")
    step = max(1, len(x) // 10)
    top.set_xticks(x[::step], [str(m) for m in stages[::step]])
    top.set_xlabel(f"stages ({name})")


def loss_by_stage(stages, loss, share, ylabel, ax=None):
    """Training loss after each boost, with the share of deviance explained on the right."""
    ax = _axes(ax)
    ax.plot(stages, loss, "o-", ms=3, color=BLUE)
    ax.set_xlabel("boost")
    ax.set_ylabel(ylabel)
    right = ax.secondary_yaxis("right", functions=_linear(loss[0], share[0], loss[-1], share[-1]))
    right.set_ylabel("% deviance explained")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines["top"].set_visible(False)
    return ax


def _linear(x0, y0, x1, y1):
    """The map through two points, and its inverse; the identity where they coincide."""
    if x0 == x1 or y0 == y1:
        return (lambda x: x), (lambda y: y)
    slope = (y1 - y0) / (x1 - x0)
    return (lambda x: y0 + slope * (x - x0)), (lambda y: x0 + (y - y0) / slope)


def bars(names, values, xlabel, ax=None, spread=None, title=None):
    """Horizontal bars, the first name on top; `spread` draws a faint wider bar behind each."""
    ax = _axes(ax, (7.0, max(2.5, 0.32 * len(names) + 1.2)))
    y = np.arange(len(names))[::-1]
    if spread is not None:
        side = np.where(np.asarray(values) >= 0, 1.0, -1.0)
        ax.barh(
            y, side * spread, color=GREY, alpha=0.35, height=0.75, label="mean |local coefficient|"
        )
    color = np.where(np.asarray(values) >= 0, BLUE, RED)
    ax.barh(y, values, color=color, height=0.5, label="mean local coefficient")
    ax.set_yticks(y, names)
    ax.axvline(0.0, color="black", lw=0.6)
    ax.set_xlabel(xlabel)
    if spread is not None:
        ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    if title:
        ax.set_title(title, fontsize=10)
    return _tidy(ax)


def scatter(xy, colour, labels, name, ax=None, axis_names=("PC 1", "PC 2")):
    """Points in the plane coloured by a number, or by class where `labels` are given."""
    ax = _axes(ax, (6.2, 5.0))
    if labels is None:
        points = ax.scatter(*xy.T, c=colour, s=12, cmap="viridis", alpha=0.8, lw=0)
        ax.figure.colorbar(points, ax=ax, label=name)
    else:
        entries = [
            ax.scatter(*xy[colour == k].T, s=12, alpha=0.7, lw=0, label=label)
            for k, label in enumerate(brief(labels, LONGEST))
        ]
        legend(ax, entries, title=brief([name], LONGEST)[0], frameon=False, fontsize=8)
    ax.set_xlabel(axis_names[0])
    ax.set_ylabel(axis_names[1])
    return _tidy(ax)


def drift(indicator, loss, threshold, limit, ax=None):
    """Drift indicator against loss, both log, with the ROC curve of large losses inset.

    `limit` is the loss above which a row counts as badly predicted.
    """
    ax = _axes(ax, (6.5, 5.0))
    x, y = (np.maximum(v, 1e-12 * max(v.max(), 1e-300)) for v in (indicator, loss))
    bad = loss > limit
    for of, color, label in ((~bad, BLUE, "small loss"), (bad, RED, "large loss")):
        ax.scatter(x[of], y[of], s=10, alpha=0.6, lw=0, color=color, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left=np.quantile(x, 0.01))
    ax.set_ylim(bottom=np.quantile(y, 0.01))
    ax.axhline(limit, color=GREY, lw=0.8, ls="--")
    if threshold is not None:
        ax.axvline(threshold, color="black", lw=0.8, ls="--", label="threshold")
    ax.set_xlabel("drift indicator |f(x) - f_kNN(x)|")
    ax.set_ylabel("loss")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    if 0 < bad.sum() < len(bad):
        _roc_inset(ax, indicator, bad)
    return _tidy(ax)


def _roc_inset(ax, indicator, bad):
    inset = ax.inset_axes([0.07, 0.07, 0.27, 0.27])
    false_rate, true_rate = roc(indicator, bad)
    inset.plot(false_rate, true_rate, color="black", lw=1)
    inset.plot([0, 1], [0, 1], color=GREY, lw=0.6, ls=":")
    inset.set_xticks([0, 1])
    inset.set_yticks([0, 1])
    inset.tick_params(labelsize=7)
    inset.set_title(f"ROC, AUC {significant(auc(indicator, bad), 2)}", fontsize=8)


def roc(score, positive):
    """False and true positive rates of all thresholds, from the strictest."""
    order = np.argsort(-score, kind="stable")
    score, hit = score[order], positive[order]
    last = np.r_[np.flatnonzero(np.diff(score)), len(score) - 1]
    true, false = np.cumsum(hit)[last], np.cumsum(~hit)[last]
    return np.r_[0.0, false / false[-1]], np.r_[0.0, true / true[-1]]


def auc(score, positive):
    """Area under the ROC curve."""
    false_rate, true_rate = roc(np.asarray(score), np.asarray(positive, bool))
    return float(np.trapezoid(true_rate, false_rate))


# Of runs, in the order they are named: the third of Okabe and Ito's first, then the others.
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31")


@literal
def learning(frame, ax=None, *, measure):
    """Means of a measure against the labelled rows, a line a run with a band of one error."""
    ax = _axes(ax)
    ends = {}
    for k, (name, part) in enumerate(frame.groupby("run", sort=False)):
        color = LINES[k % len(LINES)]
        x, mean, se = (part[c].to_numpy() for c in ("n_labelled", "mean", "se"))
        ax.plot(x, mean, "o-", ms=3, lw=1.5, color=color)
        if np.isfinite(se).all():
            ax.fill_between(x, mean - se, mean + se, color=color, alpha=0.15, lw=0)
        ends[name] = (mean[-1], color)
    ax.set_xlabel("labelled rows")
    ax.set_ylabel(f"{measure.replace('_', '-')} on the test rows")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _name_ends(ax, x[-1], ends)
    return _tidy(ax)


@literal
def winloss(frame, ax=None, *, of, runs):
    """-log10 p of wins and losses against the labelled rows, a line a run (Fig. 7.6).

    runs : names of all runs, in the order that gives them their colours
    """
    ax = _axes(ax)
    ends, x = {}, frame.index.to_numpy()
    for name in frame:
        color = LINES[runs.index(name) % len(LINES)]
        ax.plot(x, frame[name], "o-", ms=3, lw=1.5, color=color)
        ends[f"against {name}"] = (frame[name].iloc[-1], color)
    limit = -np.log10(0.05)
    top = 1.1 * max(2.0 * limit, np.abs(frame.to_numpy()).max())
    ax.axhspan(-limit, limit, color=GREY, alpha=0.12, lw=0)
    ax.axhline(0.0, color="black", lw=0.6)
    for side, word in ((1, f"{of} wins"), (-1, f"{of} loses")):
        ax.axhline(side * limit, color="black", lw=0.8, ls="--")
        ax.text(0.01, 0.5 + 0.47 * side, word, transform=ax.transAxes, fontsize=9, color=GREY,
                va="top" if side > 0 else "bottom")  # fmt: skip
    ax.set_ylim(-top, top)
    ax.set_xlabel("labelled rows")
    ax.set_ylabel("−log₁₀ p, with the sign of the difference")
    ax.set_title("dashed: p = 0.05; between the lines nothing is certain", fontsize=9)
    _name_ends(ax, x[-1], ends)
    return _tidy(ax)


def shares(names, share, said, ax=None):
    """A bar of its share for each name, the first on top, with a text at the end."""
    ax = _axes(ax, (7.0, max(2.0, 0.4 * len(names) + 1.0)))
    y = np.arange(len(names))[::-1]
    ax.barh(y, share, color=BLUE, height=0.55)
    for at, text, end in zip(y, said, share, strict=True):
        ax.annotate(text, (end, at), xytext=(4, 0), textcoords="offset points", va="center",
                    fontsize=8)  # fmt: skip
    ax.set_yticks(y, names)
    ax.set_xlim(0.0, 1.3 * np.max(share))
    ax.set_xlabel("share of the rows")
    return _tidy(ax)


def rounds(values, name, ax=None):
    """A value after each round."""
    ax = _axes(ax)
    ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=3, color=BLUE)
    ax.set_xlabel("round")
    ax.set_ylabel(name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    return _tidy(ax)
