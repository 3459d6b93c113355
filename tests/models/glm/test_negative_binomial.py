"""Negative binomial counts, compared with what R prints for the data `quine`."""

import pandas as pd
import pytest

import lodim as ld

DAYS = {  # absent from school: Quine (1975); Aitkin (1978); Venables & Ripley (2002), Sect. 7.4
    "A M F0 SL": [2, 11, 14],
    "A M F0 AL": [5, 5, 13, 20, 22],
    "A M F1 SL": [6, 6, 15],
    "A M F1 AL": [7, 14],
    "A M F2 SL": [6, 32, 53, 57],
    "A M F2 AL": [14, 16, 16, 17, 40, 43, 46],
    "A M F3 AL": [8, 23, 23, 28, 34, 36, 38],
    "A F F0 SL": [3],
    "A F F0 AL": [5, 11, 24, 45],
    "A F F1 SL": [5, 6, 6, 9, 13, 23, 25, 32, 53, 54],
    "A F F1 AL": [5, 5, 11, 17, 19],
    "A F F2 SL": [8, 13, 14, 20, 47, 48, 60, 81],
    "A F F2 AL": [2],
    "A F F3 AL": [0, 2, 3, 5, 10, 14, 21, 36, 40],
    "N M F0 SL": [6, 17, 67],
    "N M F0 AL": [0, 0, 2, 7, 11, 12],
    "N M F1 SL": [0, 0, 5, 5, 5, 11, 17],
    "N M F1 AL": [3, 4],
    "N M F2 SL": [22, 30, 36],
    "N M F2 AL": [8, 0, 1, 5, 7, 16, 27],
    "N M F3 AL": [0, 30, 10, 14, 27, 41, 69],
    "N F F0 SL": [25],
    "N F F0 AL": [10, 11, 20, 33],
    "N F F1 SL": [5, 7, 0, 1, 5, 5, 5, 5, 7, 11, 15],
    "N F F1 AL": [5, 14, 6, 6, 7, 28],
    "N F F2 SL": [0, 5, 14, 2, 2, 3, 8, 10, 12],
    "N F F2 AL": [1],
    "N F F3 AL": [1, 9, 22, 3, 3, 5, 15, 18, 22, 37],
}
FACTORS = ["Eth", "Sex", "Age", "Lrn"]


@pytest.fixture(scope="module")
def quine():
    keys = [key.split() for key, days in DAYS.items() for _ in days]
    df = pd.DataFrame(keys, columns=FACTORS)
    return df.assign(Days=[d for days in DAYS.values() for d in days])


def test_main_effects(quine):
    """As R prints summary(MASS::glm.nb(Days ~ Eth + Sex + Age + Lrn, quine))."""
    fit = ld.glm("Days ~ Eth + Sex + Age + Lrn", quine, family="negative_binomial")
    tidy = fit.tidy().round(5)
    estimates = [2.89458, -0.56937, 0.08232, -0.44843, 0.08808, 0.35690, 0.29211]
    errors = [0.22842, 0.15333, 0.15992, 0.23975, 0.23619, 0.24832, 0.18647]
    assert tidy["estimate"].tolist() == estimates and tidy["std_error"].tolist() == errors
    assert [round(fit.theta, 4), round(fit.theta_error, 3)] == [1.2749, 0.161]
    assert round(2 * fit.log_likelihood, 3) == -1093.151 and round(fit.aic, 1) == 1109.2
    null, rest = fit.null_deviance, fit.deviance
    assert [round(null, 2), round(rest, 2), fit.df_resid] == [195.29, 167.95, 139]


def test_nested_effects(quine):
    """As R prints MASS::glm.nb(Days ~ Sex/(Age + Eth*Lrn), quine)."""
    formula = "Days ~ Sex + Sex:Age + Sex:Eth + Sex:Lrn + Sex:Eth:Lrn"
    fit = ld.glm(formula, quine, family="negative_binomial")
    assert [round(fit.theta, 3), round(fit.theta_error, 3)] == [1.598, 0.213]
    assert round(2 * fit.log_likelihood, 3) == -1063.025 and fit.df == 14
