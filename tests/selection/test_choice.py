"""The choice of settings: stages to a round number, and which runs go on."""

from types import SimpleNamespace

import numpy as np
import pytest

from lodim.family import Gaussian
from lodim.selection import racing
from lodim.selection.choice import central_count, weights


@pytest.mark.parametrize(
    "mean, length, count",
    [(1.0, 1, 1), (7.4, 50, 7), (9.6, 50, 10), (10.6, 11, 10), (42.0, 100, 40), (43.4, 100, 40),
     (46.0, 100, 50), (99.0, 100, 100), (99.0, 99, 80), (990.0, 1000, 1000), (2.5, 3, 3)],
)  # fmt: skip
def test_stages_are_a_round_number_among_those_that_were_tried(mean, length, count):
    stages = np.arange(1, length + 1)
    weight = np.zeros(length)
    low = min(int(mean), length)
    weight[low - 1] = 1.0 - (mean - low)
    if mean > low:
        weight[low] = mean - low
    assert weight @ stages == pytest.approx(mean)
    assert central_count(weight) == count
    assert central_count(0.001 * weight) == count  # a share of all weights
    assert central_count(np.zeros(length)) == 1  # of no weight at all, the fewest


def test_losses_within_a_tie_weigh_much_the_same():
    """Where nothing is lost, one fold's last digit would else choose."""
    losses = [[[(loss, 10, 0.0), (loss, 10, 0.0)]] for loss in (1e-9, 2e-9, 0.02)]
    plain, tied = (np.ravel(weights(losses, 1, False, tie=tie)) for tie in (0.0, 0.01))
    np.testing.assert_allclose(plain, [1.0, 0.0, 0.0], atol=1e-9)
    share = np.exp([0.0, 0.0, -2.0])
    np.testing.assert_allclose(tied, share / share.sum(), rtol=1e-6)


def runs(*curves, patience=15, most=100):
    """A run for each curve of held-out losses by stage, on two folds that differ by a little."""

    def fit_stages(train, family, settings, eval_batch):
        for loss in settings.curve:
            yield None, None, np.full((4, 1), np.sqrt(loss + eval_batch.shift))

    spec = SimpleNamespace(patience=patience, stage_setting="m", fit_stages=fit_stages)
    problem = SimpleNamespace(spec=spec, family=Gaussian())
    w = np.full(4, 0.25)
    tests = [
        SimpleNamespace(y=np.zeros(4), n=4, weight_sum=4.0, weight=w, units=None, shift=s)
        for s in (-0.5, 0.5)
    ]
    splits = [(None, test) for test in tests]
    settings = [SimpleNamespace(curve=curve, max_stages=most) for curve in curves]
    return [racing.StageLosses(problem, splits, s, None, racing.deviance, 1) for s in settings]


def stages_of(*curves, **options):
    """How many stages each run goes through, where the standard error is 0.5."""
    made = runs(*curves, **options)
    racing._race(made, 1)
    return [len(run.rows) for run in made]


def test_a_run_that_has_turned_and_is_far_behind_leaves():
    level = np.full(100, 5.0)
    rising = 5.0 + 0.3 * np.arange(100)  # best at first; 2.7 behind, 5.4 errors, after ten
    assert stages_of(level, rising) == [16, 10]
    assert stages_of(level, 5.0 + 0.05 * np.arange(100)) == [16, 16]


def test_stages_that_lower_the_loss_by_a_twentieth_of_an_error_have_gained_nothing():
    slow, fast = 5.0 - 0.001 * np.arange(100), 5.0 - 0.003 * np.arange(100)
    assert stages_of(slow) == [16]  # 0.015 in 15 stages, and 0.025 would count
    assert stages_of(fast) == [100]
    assert stages_of(fast, most=40) == [40]
