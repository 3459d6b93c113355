"""The choice of settings: stages to a round number, and which runs go on."""

from types import SimpleNamespace

import numpy as np
import pytest

from lodim.family import Gaussian
from lodim.fitting.model import Model
from lodim.selection import racing
from lodim.selection.tuning import central_count, weights

BATCH = SimpleNamespace(y=np.array([-1e3, 1e3]), positive_weight=slice(None))


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


def same_family(batch, family, settings):
    return family


def runs(*curves, patience=15, most=100):
    """A run for each curve of held-out losses by stage, on two folds that differ by a little."""

    def fit_stages(train, family, settings, eval_batch):
        for loss in settings.curve:
            yield None, None, np.full((4, 1), np.sqrt(loss + eval_batch.shift))

    model = SimpleNamespace(
        patience=patience,
        stage_setting="m",
        fit_stages=fit_stages,
        learn_family=same_family,
        counts_stages=bool,
        held_out_deviance=Model().held_out_deviance,
    )
    problem = SimpleNamespace(model=model, family=Gaussian(), batch=BATCH)
    w = np.full(4, 0.25)
    tests = [
        SimpleNamespace(y=np.zeros(4), n=4, weight_sum=4.0, weight=w, units=None, shift=s)
        for s in (-0.5, 0.5)
    ]
    train = SimpleNamespace()
    splits = [(train, test) for test in tests]
    settings = [SimpleNamespace(curve=curve, max_stages=most) for curve in curves]
    return [racing.StageLosses(problem, splits, s, None, "deviance", 1) for s in settings]


def stages_of(*curves, n_jobs=1, **options):
    """How many stages each run goes through, where the standard error is 0.5."""
    made = runs(*curves, **options)
    racing._race(made, n_jobs)
    return [len(run.rows) for run in made]


def test_a_run_that_has_turned_and_is_far_behind_leaves():
    level, stage = np.full(100, 5.0), np.arange(100)
    assert stages_of(level, 5.0 + 0.3 * stage) == [16, 8]  # 2.1 behind, over four errors
    assert stages_of(level, 5.0 + 0.15 * stage) == [16, 10]  # 1.35, over two, after ten stages
    assert stages_of(level, 5.0 + 0.05 * stage) == [16, 16]
    assert stages_of(level, 15.0 - 0.1 * stage) == [16, 10]  # far behind, but it falls
    assert stages_of(level, np.maximum(15.0 - 1.2 * stage, 4.9)) == [16, 25]
    assert stages_of(level, *[5.0 + 0.3 * stage] * 3, n_jobs=2) == [16, 8, 8, 8]


def test_a_second_choice_keeps_what_the_first_has_fitted():
    made = runs(np.full(100, 5.0), 5.0 + 0.3 * np.arange(100))
    racing._race(made, 1)
    rows = [list(run.rows) for run in made]
    other = runs(np.linspace(8.0, 4.5, 100))
    racing._race([*made, *other], 1)
    assert [run.rows for run in made] == rows  # neither goes on
    assert len(other[0].rows) == 10


def test_a_run_is_judged_beside_the_stages_that_others_had_by_then():
    first, second = runs(np.linspace(8.0, 3.0, 100)), runs(np.linspace(8.5, 3.0, 100))
    racing._race(first, 1)
    racing._race([*first, *second], 1)
    assert len(second[0].rows) == 100  # after ten stages 11 errors behind what the first ends with


def test_stages_that_lower_the_loss_by_a_twentieth_of_an_error_have_gained_nothing():
    slow, fast = 5.0 - 0.001 * np.arange(100), 5.0 - 0.003 * np.arange(100)
    assert stages_of(slow) == [16]  # 0.015 in 15 stages, and 0.025 would count
    assert stages_of(fast) == [100]
    assert stages_of(fast, most=40) == [40]


def test_the_bar_of_a_race_ends_full(monkeypatch):
    """A step for each fold of a run, of one that serves several values too; none for old runs."""
    bars = []

    class Bar:
        def __init__(self, total, what):
            self.total, self.done = total, 0
            bars.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

        def update(self, n):
            self.done += n

    def curves(train, family, settings, eval_batch):
        for loss in settings.curve:
            yield None, None, np.full((4, 1), loss)

    test = SimpleNamespace(y=np.zeros(4), n=4, weight_sum=4.0, weight=np.full(4, 0.25), units=None)
    train = SimpleNamespace()
    monkeypatch.setattr(racing.progress, "bar", Bar)
    for staged in ("m", None):
        model = SimpleNamespace(
            patience=2,
            stage_setting=staged,
            fit_stages=curves,
            learn_family=same_family,
            counts_stages=lambda s, staged=staged: staged is not None,
            held_out_deviance=Model().held_out_deviance,
        )
        problem = SimpleNamespace(model=model, family=Gaussian(), batch=BATCH)
        settings = [SimpleNamespace(curve=[3.0, 2.0, level]) for level in (1.0, 1.5)]
        runs = [
            racing.StageLosses(problem, [(train, test)] * 2, s, 3, "deviance", 1) for s in settings
        ]
        racing._race(runs[:1], 1)
        racing._race(runs, 1)
    assert [(bar.done, bar.total) for bar in bars] == [(2, 2)] * 4
