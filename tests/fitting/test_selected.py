"""The held-out deviance near the settings of a fit."""

from types import SimpleNamespace

import pandas as pd
import pytest

import lodim as ld
from lodim.fitting.saved import MEASURE, nearest_loss

CARS = ld.data("autompg")


@pytest.mark.parametrize(
    "columns, settings, mean",
    [
        ({"lambda_": [1.0, 0.1, 0.01]}, {"lambda_": 0.04}, 2.0),  # nearer to 0.1 in log
        ({"budget": [0.0, 2.0, 5.0]}, {"budget": 1.5}, 2.0),
        ({"lambda_": [1.0, 1.0, 0.1], "m": [2, 9, 9]}, {"lambda_": 0.9, "m": 8}, 2.0),
        ({"lambda_": [1.0, 0.1, None]}, {"lambda_": None}, 3.0),
        ({"lambda_": [1.0, 0.1, None]}, {"lambda_": 0.01}, 2.0),
        ({"loss": ["a", "b", "c"]}, {"loss": "b"}, 2.0),
        ({"loss": ["a", "b", "c"]}, {"loss": "d"}, None),
        ({"k": [1, 2, 3], MEASURE: ["mae"] * 3}, {"k": 2}, None),
    ],
)
def test_the_loss_is_that_of_the_nearest_settings(columns, settings, mean):
    frame = pd.DataFrame(columns | {"mean": [1.0, 2.0, 3.0]})
    assert nearest_loss(frame, SimpleNamespace(**settings)) == mean


def test_a_report_shows_the_held_out_share_next_to_that_of_the_training_rows():
    grid = {"lambda_": [0.1, 100.0]}
    best = ld.cv(ld.gbmap, "mpg ~ weight", CARS, grid=grid, m=1, folds=3).best
    table, null = best.selection, CARS["mpg"].var(ddof=0)
    share = 1.0 - table["mean"].min() / null
    header = dict(best.summary().header)
    assert list(header).index("Dev. ratio (held out)") == list(header).index("Dev. ratio") + 1
    assert header["Dev. ratio (held out)"] == f"{share:.4f}"
    assert f"Dev. ratio (held out): {share:.4f}\n" in repr(best)
    assert "slightly too high" in " ".join(str(best.summary()).split())


def test_losses_that_are_no_deviances_are_no_share(tmp_path):
    how = {"grid": {"lambda_": [0.1, 1.0]}, "m": 1, "folds": 3}
    best = ld.cv(ld.gbmap, "mpg ~ weight", CARS, loss="mae", **how).best
    assert set(best.selection[MEASURE]) == {"mae"}
    best.save(tmp_path / "fit")
    for fit in (best, ld.load(tmp_path / "fit")):
        assert "held out" not in repr(fit)


@pytest.mark.long
def test_a_view_of_classes_has_the_share_of_its_held_out_rows():
    fit = ld.melm("cultivar ~ alcohol + flavanoids", ld.data("wine"), gamma=1.0, n_starts=3)
    share = 1.0 - fit.measures["held_deviance"] / fit.measures["null_deviance"]
    assert f"Dev. ratio (held out): {share:.4f}" in repr(fit)
    text = " ".join(str(fit.summary()).split())
    assert "is for the rows that cross-validation held out." in text and "optimistic" not in text
