"""Racing: settings compete by held-out loss, stage by stage; the worst ones stop early."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from lodim import progress
from lodim.design.batch import SplitsInPlace
from lodim.engine.blocks import single_blas, sum_rows

NO_GAIN = 0.05  # standard errors: smaller decreases of the loss count as no gain
HEAT = 10  # largest number of stages between two comparisons of the runs
BEHIND = 2.0  # standard errors above the lowest loss at which a run stops after a heat
FAR_BEHIND = 4.0  # ... and at which a run whose loss rises stops at once


def misclassified(family, y, weight, score):
    """Return 1 for rows whose class y is not the most probable one by `score` (n, K), else 0."""
    return (family.ranking(score).argmax(axis=1) != y).astype(float)


def absolute(family, y, weight, score):
    """Return the absolute residual of each row, (n,), for linear predictors `score` (n, K)."""
    return np.abs(family.residual(y, score))


# Losses besides "deviance", which may depend on the weights of all rows.
LOSSES = {"class": misclassified, "mae": absolute}


def grid_losses(problem, splits, points, loss, n_jobs, draws=1, runs=None):
    """Cross-validate a grid; return a list (stages, folds, 3) per point: mean loss, weight and SE.

    splits : pair of Batches (training, held out) per fold, for `draws` divisions
    points : Settings per grid point, each fitted in stages (steps)
    loss : "deviance", "class" or "mae"
    runs : dict Settings -> StageLosses, to reuse and extend"""
    model, pairs, served = problem.model, [], {}
    for point in points:  # those that differ only in the setting `name`, such as m, share one fit
        name = model.stage_setting if model.counts_stages(point) else model.shared_setting
        key, value = (replace(point, **{name: None}), getattr(point, name)) if name else (point, 1)
        pairs.append((key, value))
        served.setdefault(key, set()).add(value)
    runs = {} if runs is None else runs
    for key, values in served.items():
        if key not in runs:
            settings, n_stages = key, None  # None: held-out losses decide
            if model.shared_setting:
                settings = replace(key, **{model.shared_setting: tuple(ordered(values))})
                n_stages = len(values)
            elif None not in values:
                n_stages = max(values)
            runs[key] = StageLosses(problem, splits, settings, n_stages, loss, draws)
    if isinstance(splits, SplitsInPlace):
        _in_turn(list(runs.values()))
    else:
        _race(list(runs.values()), n_jobs)
    rows = []
    for key, value in pairs:
        last = ordered(served[key]).index(value) + 1 if model.shared_setting else value
        rows.append(runs[key].rows[:last])
    return rows


def _race(runs, n_jobs):
    """Fit all `runs` (StageLosses) side by side, stage by stage, until each has finished.

    They change in place. Those without a fixed number of stages may end early."""
    heat = min(HEAT, runs[0].patience)
    running = [run for run in runs if not run.finished]
    folds = sum(len(run.splits) for run in running)
    shown = progress.bar(folds, "cross-validation")
    with single_blas(), shown as bar, ThreadPoolExecutor(n_jobs) as pool:
        for_each = pool.map if n_jobs > 1 else map
        while running:
            # The smallest penalties come last, and their fits take longest.
            parts = [
                (run, range(i, len(run.splits), n_jobs), bar)
                for run in reversed(running)
                for i in range(min(n_jobs, len(run.splits)))
            ]
            list(for_each(lambda task: StageLosses.advance(*task), parts))
            for run in running:
                run.close_stage()
            stage = len(running[0].rows)
            loss, error = min((run.lowest(stage) for run in runs), key=lambda pair: pair[0])
            for run in running:
                far = BEHIND if stage % heat == 0 else FAR_BEHIND
                if run.patient and (stage % heat == 0 or run.means[-1] > min(run.means)):
                    run.behind = run.means[-1] > loss + far * error
            ended = [run for run in running if run.finished]
            bar.update(sum(len(run.splits) for run in ended if run.staged))
            for run in ended:  # its losses are kept, not the rows and scores of its fits
                run.fits = ()
            running = [run for run in running if run not in ended]


def _in_turn(runs):
    """Complete one StageLosses (fits to all folds) of `runs` after the other, to save memory."""
    folds = sum(len(run.splits) for run in runs)
    with single_blas(), progress.bar(folds, "cross-validation") as bar:
        for run in runs:
            run.complete(bar)


def ordered(values, down=False):
    """Return the values sorted (decreasing if `down`), with None last."""
    known = sorted((v for v in values if v is not None), reverse=down)
    return known + [v for v in values if v is None]


class StageLosses:
    """Fits to all folds with the same settings, and their held-out losses after each stage.

    A stage is a step of a fit. If `n_stages` is None, stages follow until losses stop falling.
    rows : per stage and fold, (mean loss, weight, SE)"""

    def __init__(self, problem, splits, settings, n_stages, loss, draws):
        self.patient, self.patience = n_stages is None, problem.model.patience
        self.most = n_stages or settings.max_stages
        self.family, self.splits, self.rows = problem.family, splits, []
        self.loss = LOSSES.get(loss, problem.model.held_out_deviance)
        self.row = [None] * len(splits)
        self.means, self.errors, self.behind = [], [], False
        self.draws, self.staged = draws, problem.model.counts_stages(settings)
        if hasattr(settings, "threads") and not isinstance(splits, SplitsInPlace):
            settings = replace(settings, threads=1)
        self.model, self.settings = problem.model, settings
        self.families = [self.family] * len(splits)
        self.fits, self.most_loss = [None] * len(splits), np.inf
        if loss == "deviance":
            y = problem.batch.y[problem.batch.positive_weight]
            self.most_loss = self.family.most_deviance(y[~np.isnan(y)])

    def advance(self, folds, bar):
        """Fit the next stage of some folds; update progress `bar` if the model has no stages."""
        for k in folds:
            self.row[k] = self._advance_fold(k)
            if not (self.staged or self.rows):
                bar.update(1)

    def close_stage(self):
        self.rows.append(list(self.row))
        mean = fold_means(self.rows[-1:])[0]
        self.means.append(mean)
        self.errors.append(standard_error(np.array(self.row), mean, self.draws))

    def _advance_fold(self, k):
        """Fit the next stage of fold k; return its held-out (mean loss, weight, standard error)."""
        train, test = self.splits[k]
        if self.fits[k] is None:
            self.families[k] = self.model.learn_family(train, self.family, self.settings)
            rest = self.families[k], self.settings
            self.fits[k] = self.model.fit_stages(train, *rest, eval_batch=test)
        score = next(self.fits[k])[2]
        losses = self.loss(self.families[k], test.y, test.weight, score)
        return fold_row(test, np.minimum(losses, self.most_loss))

    def complete(self, bar):
        """Fit all stages: fold by fold if the number of stages is fixed; update progress `bar`."""
        while self.patient and not self.finished:
            self.advance(range(len(self.splits)), bar)
            self.close_stage()
        columns = []
        for k in () if self.patient else range(len(self.splits)):
            columns.append([self._advance_fold(k) for _ in range(self.most)])
            self.fits[k] = None
            bar.update(1)
        self.rows += map(list, zip(*columns, strict=True))
        self.fits = ()

    @property
    def finished(self):
        if self.behind or len(self.rows) >= self.most:
            return True
        if not (self.patient and self.rows):
            return False
        loss, error = self.lowest()
        as_low = np.flatnonzero(np.array(self.means) <= loss + NO_GAIN * error)[0]
        return len(self.rows) - 1 - as_low >= self.patience

    def lowest(self, stages=None):
        """Return the lowest mean loss over stages (all, or the first `stages` ones), and its SE."""
        at = int(np.argmin(self.means[:stages]))
        return self.means[at], self.errors[at]


def fold_row(test, each):
    """Return the mean loss of held-out rows, its weight and its standard error.

    test : Batch of the rows; with groups, the standard error allows for dependence within them
    each : (n,) losses"""
    weight = test.weight
    mean = sum_rows(lambda i: weight[i] @ each[i], test.n)
    if test.units is None:
        square = sum_rows(lambda i: _square(weight[i] * (each[i] - mean)), test.n)
    else:
        of_unit = np.unique(test.units, return_inverse=True)[1]
        square = _square(np.bincount(of_unit, weight * (each - mean)))
    return mean, test.weight_sum, np.sqrt(square)


def _square(v):
    return v @ v


def fold_means(rows):
    """Return mean losses (stages,) over folds; rows : (stages, folds, 3), with loss, weight, SE."""
    rows = np.asarray(rows)
    return (rows[:, :, 0] * rows[:, :, 1]).sum(axis=1) / rows[:, :, 1].sum(axis=1)


def standard_error(row, mean, draws=1):
    """Return the standard error of a mean held-out loss, from the differences between folds.

    row : (folds of all draws, 3), mean loss, weight and standard error
    draws : number of random divisions into folds"""
    K = len(row) // draws
    if K == 1:
        return float(row[0, 2])
    variance = np.average((row[:, 0] - mean) ** 2, weights=row[:, 1])
    return float(np.sqrt(variance / (K - 1)))
