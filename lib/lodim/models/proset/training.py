"""Training rows of a proset fit, with their estimates by the prototypes fitted so far."""

from dataclasses import replace

import numpy as np

from lodim.design.batch import with_positive_weight
from lodim.engine import row_keys, tiles
from lodim.engine.blocks import SPAN_ROWS, available_threads
from lodim.errors import ArgumentError
from lodim.models.proset import candidates
from lodim.models.proset.cpu_kernels import (
    CLASSES,
    DENSITY,
    ROOT_TAU,
    SQUARED,
    agreement_sums,
)
from lodim.models.proset.objective import ScoringRows
from lodim.models.proset.prototypes import TILES_ON_GPU, batch_points, prior, run_kernel


class BatchState:
    """Training rows of a fit, with estimates a / b by the null model and the prototypes so far.

    a / b is a mean, or the probability or density of the response. In small data, rows of weight
    zero are dropped."""

    # A prototype's row is left out of its own estimate, so that later batches also fit it.

    def __init__(self, batch, family, settings):
        if batch.n <= SPAN_ROWS:
            batch = with_positive_weight(batch)
        self.batch, self.settings = batch, settings
        self.threads = settings.threads or available_threads()
        self.weight, base = batch.weight, batch.offset_matrix(family.n_scores)
        null = family.null_score(batch.y, self.weight, base)
        self.level, self.scale, self.moment = (null - base)[0], 1.0, None
        # level and scale: linear predictor (K,) of the null model, SD of a numeric response
        self.varies = tiles.varies(batch.X)
        # The estimate a / b is the probability of the row's class, the density at its response, or
        # the mean of the response; moment / b is this mean for every numeric response.
        self.b = np.ones(batch.n)
        if family.name == "gaussian":
            self.n_classes, self.loss = 0, DENSITY if settings.loss == "density" else SQUARED
            residual = batch.y - null[:, 0]
            self.scale = float(np.sqrt(self.weight @ residual**2)) or 1.0
            self.y, self.moment = residual / self.scale, np.zeros(batch.n)
            density = np.exp(-0.5 * self.y**2) / ROOT_TAU
            # Its logarithm must exist.
            self.a = self.moment if self.loss == SQUARED else np.maximum(density, 1e-30)
        else:
            self.n_classes, self.loss, self.y = max(2, family.n_scores), CLASSES, batch.y
            p = prior(self.level, base, self.n_classes)
            self.a = np.maximum(p[np.arange(batch.n), self.code], np.finfo(float).tiny)
        if batch.n <= SPAN_ROWS:
            self.content, _ = row_keys.of_batch(batch, self.n_classes)
        else:
            self.content = row_keys.lengths(batch.X, batch.n, self.threads)

    @property
    def code(self):
        """Class of each row, (n,) int; zero for numeric responses."""
        return self.y.astype(int) if self.loss == CLASSES else np.zeros(len(self.y), int)

    def losses(self, a, b):
        """Return row losses (n,): squared error of a mean a / b, or -log of a probability a / b."""
        if self.loss == SQUARED:
            return (a / b - self.y) ** 2
        return np.log(b) - np.log(a)

    def deviance(self):
        """Return the weighted mean deviance of the rows; each is left out of its own prediction."""
        if self.loss == CLASSES:
            return float(2.0 * (self.weight @ self.losses(self.a, self.b)))
        return float(self.scale**2 * (self.weight @ (self.moment / self.b - self.y) ** 2))

    def split(self, c):
        """Draw the Split for batch c: candidates for prototypes, and rows whose loss counts."""
        s, at = self.settings, np.flatnonzero(self.weight)
        goodness, label = -self.losses(self.a, self.b)[at], self.code[at]
        groups = 2 * label  # the easy rows of class k; the hard ones are in group 2 k + 1
        for k in np.unique(label):
            of = label == k
            least = np.quantile(goodness[of], s.hard_share)
            # Rounding errors do not decide at the quantile.
            groups[of] += goodness[of] < least - 1e-6 * np.abs(goodness[of]).max()
        some = self.weight[at], self.content[at]
        drawn = candidates.draw_split(groups, *some, s, [s.seed, c])
        return replace(drawn, candidates=at[drawn.candidates], scoring=at[drawn.scoring])

    def scoring_rows(self, split):
        """Return the rows on which a Split's loss is computed, as ScoringRows."""
        X, i, kind = self.batch.X, split.scoring, np.dtype(self.settings.precision).type
        if len(i) <= SPAN_ROWS or X.dtype != kind:
            if len(i) > SPAN_ROWS and self.batch.out_of_core:
                raise ArgumentError(
                    f"the features of streamed data are {X.dtype}, and proset would need a copy "
                    f"of them as {kind.__name__}: give control={{'precision': '{X.dtype}'}}, or "
                    f"control={{'max_rows': {SPAN_ROWS}}}, the number of rows in the loss"
                )
            columns = self.y[i], self.a[i], self.b[i], split.scoring_weight, split.own
            return ScoringRows.from_tiles(tiles.pack(tiles.rows(X, i), kind), *columns)
        weight, own = np.zeros(self.batch.n), np.full(self.batch.n, -1)
        weight[i], own[i] = split.scoring_weight, split.own
        return ScoringRows.from_tiles(X, self.y, self.a, self.b, weight, own)

    def estimates_with(self, prototypes):
        """Return a and b (n,) of the rows' estimates a / b if `prototypes` are added."""
        if not len(prototypes):
            return self.a, self.b
        a, b = self._with_sums(prototypes, self.loss, self.a)
        # By rounding, the remainder of a heavy prototype may be negative.
        return a if self.loss == SQUARED else np.maximum(a, self.a), np.maximum(b, self.b)

    def _with_sums(self, prototypes, loss, numerators):
        """Return a and b (n,) of the estimates a / b if `prototypes`, a set, are added.

        loss : CLASSES, SQUARED or DENSITY, the kind of estimate
        numerators : (n,) a without these prototypes"""
        X, n = self.batch.X, self.batch.n
        y, a, b = (tiles.pad(z, len(X)) for z in (self.y, numerators, self.b))
        points = batch_points(prototypes, 1, np.arange(len(prototypes)))
        active, points = points.active, points._replace(active=np.arange(len(points.active)))
        for lo in range(0, len(X), TILES_ON_GPU):
            at = slice(lo, lo + TILES_ON_GPU)
            exact = X[at][:, active].astype(np.float64, order="C")
            rest = y[at], points, prototypes.u[0], loss, a[at], b[at]
            run_kernel(agreement_sums, exact, self.threads, *rest)
        a, b = a.ravel()[:n], b.ravel()[:n]
        i, w = self.prototype_rows(prototypes)
        peak = {CLASSES: 1.0, SQUARED: self.y[i], DENSITY: prototypes.u[0] / ROOT_TAU}[loss]
        a[i] -= w * peak
        b[i] -= w
        return a, b

    def prototype_rows(self, prototypes):
        """Return positions of rows merged into `prototypes`, and the weight that each adds."""
        size = np.bincount(prototypes.member_of, minlength=len(prototypes))
        share = prototypes.w / np.maximum(size, 1)
        return np.searchsorted(self.batch.rows, prototypes.member), share[prototypes.member_of]

    def add(self, prototypes):
        """Add `prototypes` to the numerators a and denominators b of the rows' estimates a / b."""
        a, b = self.estimates_with(prototypes)
        if self.loss == DENSITY and len(prototypes):
            self.moment = self._with_sums(prototypes, SQUARED, self.moment)[0]
        self.a, self.b = a, b
        if self.loss == SQUARED:
            self.moment = a
