"""The choice of lambda_v, by losses that are given."""

import numpy as np
import pytest

from lodim.models.proset import choice

VALUES, NULL = [1.0, 0.3, 0.1, 0.03, 0.01], 5.0


def draw(means, gain=0.5, gain_error=0.01):
    """Losses and gains of a draw of five folds of 50 rows, which are hard by themselves."""
    hard = np.array([-0.2, -0.1, 0.0, 0.1, 0.2])
    means = np.array(means)
    losses = np.stack([means[:, None] + hard, np.full((5, 5), 50.0), np.full((5, 5), 0.1)], axis=2)
    gains = losses.copy()
    gains[:, :, 0] = gain + means.min() - means[:, None]
    gains[:, :, 2] = gain_error
    return losses, gains


def of_draws(*drawn):
    return [a for a, _ in drawn], [b for _, b in drawn]


def test_the_null_model_is_compared_row_by_row():
    """The folds differ by far more than the gain, which is the same in all of them."""
    for gain, is_null in ((0.03, False), (0.005, True)):
        losses, gains = of_draws(draw([2.0, 1.0, 0.9, 1.5, 2.0], gain))
        value = choice._choice(losses, gains, VALUES, NULL)
        assert value == (NULL if is_null else pytest.approx(0.1))


def test_folds_are_drawn_until_the_choice_is_clear():
    """Not clear: a centre between two values, draws that disagree, a doubtful null model."""
    inside, between = [9.0, 9.0, 1.0, 9.0, 9.0], [9.0, 9.0, 1.0, 1.0, 9.0]
    left, right = [9.0, 1.0, 1.02, 9.0, 9.0], [9.0, 9.0, 1.0, 9.0, 9.0]
    assert choice._is_settled(*of_draws(draw(inside), draw(inside)), 8)
    assert not choice._is_settled(*of_draws(draw(between), draw(between)), 8)
    assert not choice._is_settled(*of_draws(draw(left), draw(right)), 8)
    doubtful = draw(inside, 0.012)
    assert not choice._is_settled(*of_draws(*[doubtful] * 2), 8)
    assert choice._is_settled(*of_draws(*[doubtful] * 200), 1000)


def test_draws_that_could_not_change_the_choice_are_left_out():
    """The centre is a tenth of a step from where the next value is nearer: little, of five draws
    of very many, and enough where five are nearly all.
    """
    losses, gains = of_draws(*[draw([9.0, 9.0, 1.0, 1.0143, 9.0])] * 5)
    assert choice._mean_position(losses) == pytest.approx(2.4, abs=0.01)
    assert [choice._is_settled(losses, gains, most) for most in (5, 6, 8, 100)] == [
        True,
        True,
        False,
        False,
    ]


def test_draws_are_two_at_least_and_hold_out_few_rows():
    """Where nothing is ever clear: eight draws of few rows, two of many."""

    class Batch:
        units = None

        def __init__(self, n):
            self.n_positive = n

    assert [choice._most_draws(Batch(n)) for n in (4, 60, 400, 1000)] == [1, 8, 5, 2]
