"""Plots of a CostnetFit."""

import numpy as np
import pandas as pd

from lodim.checks import flag
from lodim.errors import ArgumentError
from lodim.models.costnet import diagram, frontier_models
from lodim.models.costnet.settings import RULES
from lodim.plot import axes, lines
from lodim.plot.axes import colour, mark
from lodim.report.phrases import per
from lodim.report.tables import significant


def cost(fit, ax, *, log=False):
    """Draw deviance explained in training and held-out rows against price (`log`: log scale)."""
    if fit.estimates.frontier is None:
        raise ArgumentError("a fit with lambda_ has no frontier to draw: fit without lambda_")
    ax = axes.ensure_axes(ax, (7.4, 4.6))
    null = fit.null_deviance or np.nan
    frontier = fit.estimates.frontier
    share = _share(frontier.deviance, null)
    end = 1.04 * frontier.cost[-1] or 1.0
    budget, reached = np.r_[frontier.cost, end], np.r_[share, share[-1]]
    ax.plot(budget, reached, drawstyle="steps-post", color=axes.BLUE, lw=1.4, zorder=2)
    for k, rule in enumerate(dict.fromkeys((*RULES, *frontier.rule))):
        of = np.array([r == rule for r in frontier.rule])
        if of.any():
            style = {"marker": mark(k), "color": colour(k), "s": 34}
            style |= {"edgecolor": "white", "lw": 0.5, "zorder": 3, "label": rule}
            ax.scatter(frontier.cost[of], share[of], **style)
    if frontier.held_out.size:
        mean = _share(frontier.held_out.mean(axis=1), null)
        style = {"fmt": "o-", "ms": 3, "lw": 0.9, "elinewidth": 0.7, "capsize": 2}
        style |= {"color": axes.RED, "zorder": 1.5, "label": "held out, one standard error"}
        ax.errorbar(frontier.cost, mean, 100.0 * frontier.error / null, **style)
    if fit.step.number:
        label = f"used by predict(): {significant(fit.step.cost)}"
        ax.axvline(fit.step.cost, color="black", lw=0.8, ls=":", label=label)
    if np.ptp(share) < 1.0:
        ax.set_ylim(-5.0, 100.0)
    prices = frontier.cost[frontier.cost > 0.0]
    if flag("log", log) and len(prices):  # from the lowest positive price on; 0 is left of it
        ax.set_xscale("symlog", linthresh=prices.min(), linscale=0.3)
        ax.set_xlim(left=-0.1 * prices.min())
    ax.set_xlabel("cost")
    ax.set_ylabel("% deviance explained")
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return axes.tidy(ax)


def _share(deviance, null):
    return 100.0 * (1.0 - np.asarray(deviance) / null)


def path(fit, ax, *, top=10):
    """Draw the group-penalized coefficients per SD against log lambda; name the `top` largest."""
    path, frame = fit.estimates.path, frontier_models.path(fit)
    keep = np.flatnonzero(path.lambdas > 0)[::-1]
    if not len(fit.design.names) or not len(keep):
        raise ArgumentError("the path has no features to draw")
    levels = [""] if fit.family.n_scores == 1 else [f" ({level})" for level in fit.levels]
    names = [f"{name}{level}" for level in levels for name in fit.design.names]
    coef, lambdas = path.coef[keep].transpose(0, 2, 1), path.lambdas[keep]
    wide = pd.DataFrame(coef.reshape(len(keep), -1), lambdas, names)
    sizes = zip(frame["df"][keep], frame["cost"][keep], strict=True)
    above = ("Df, cost", lambdas, [f"{df}\n{significant(cost, 3)}" for df, cost in sizes])
    return lines.against_log(wide, "lambda", f"coefficient {per(fit)}", above, ax, top)


KINDS: dict = {"cost": cost, "path": path, "graph": diagram.graph}
