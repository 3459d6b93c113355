"""Width and temperature of the classes' densities, and number of neighbours, by leaving rows out.

A row is left out with its whole weight. The projection has seen all rows: what is chosen here is
honest within it, not about it; for that, cross-validate the fit.
"""

from dataclasses import dataclass, replace

import numpy as np

from lodim.models.melm import density, neighbours
from lodim.models.melm.covariance import EMPIRICAL

WIDTHS = 2.0 ** np.arange(-2.0, 2.25, 0.5)  # times the bandwidths
TEMPERATURES = 2.0 ** np.arange(-3.0, 1.25, 0.25)
COUNTS = (1, 3, 5, 9, 15, 25, 45)  # of neighbours
ROWS = 2**14  # left out at most


@dataclass(frozen=True)
class Calibrated:
    """Densities of the chosen width and temperature.

    width times the bandwidths of gamma; loss the mean of -log p of the rows' classes, each left
    out; losses (widths, temperatures).
    """

    densities: density.Densities
    width: float
    loss: float
    losses: np.ndarray


def calibrate(
    Z, code, weight, *, gamma=1.0, covariance=EMPIRICAL, equal=False, widths=WIDTHS,
    temperatures=TEMPERATURES, threads=1, seed=0,
):  # fmt: skip
    """Choose width and temperature of `density.learn` by the log-loss of rows left out."""
    rows = _chosen(len(Z), seed)
    share = _balanced(code, weight, equal)[rows]
    losses, made = np.empty((len(widths), len(temperatures))), []
    for i, width in enumerate(widths):
        d, tile, place = density.placed(Z, code, weight, gamma * width, covariance, equal)
        made.append(d)
        logs = density.log_densities(d, Z[rows], threads, tile[rows], place[rows])
        own, size = code[rows], np.bincount(code, weight)
        rest = np.maximum(1.0 - weight[rows] / size[own], 1e-300)
        # The class is smaller by the row; alone in its class it has no density there.
        logs[np.arange(len(rows)), own] -= np.where(tile[rows] >= 0, np.log(rest), 0.0)
        for j, t in enumerate(temperatures):
            p = density.posterior(logs, d.log_prior, t)[np.arange(len(rows)), own]
            losses[i, j] = -(share @ np.log(np.maximum(p, 1e-300))) / share.sum()
    i, j = np.unravel_index(np.argmin(losses), losses.shape)
    best = replace(made[i], temperature=float(temperatures[j]))
    return Calibrated(best, float(widths[i]), float(losses[i, j]), losses)


def choose_count(Z, code, weight, *, equal=False, counts=COUNTS, seed=0):
    """Number of neighbours with the most rows right when left out; of equals the largest."""
    rows = _chosen(len(Z), seed)
    share = _balanced(code, weight, equal)[rows]
    known = neighbours.learn(Z, code, weight, equal=equal)
    nearest = neighbours.nearest(known, Z[rows], min(max(counts) + 1, len(Z)))
    # Of rows at the same place one leaves as well as another.
    itself = nearest == rows[:, None]
    itself[~itself.any(axis=1), -1] = True
    others = nearest[~itself].reshape(len(rows), -1)
    right = []
    for count in counts:
        votes = neighbours.votes(known, others[:, :count])
        right.append(share @ (votes.argmax(axis=1) == code[rows]))
    best = max(range(len(counts)), key=lambda i: (right[i], counts[i]))
    return counts[best]


def _chosen(n, seed):
    if n <= ROWS:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, ROWS, replace=False))


def _balanced(code, weight, equal):
    """Weights of rows, those of each class adding up to one if classes count equally."""
    return weight / np.bincount(code, weight)[code] if equal else weight
