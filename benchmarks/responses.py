"""Held-out deviance of default calls for counts, amounts, quantiles and order, next to others.

    python benchmarks/responses.py [--folder FOLDER] [--sets abalone,...] [--rows 1000]
        [--out FILE]
    python benchmarks/responses.py --times [--rows 5000]

Data: sets of lodim and statsmodels, and CSV files of `--folder` (as of held_out.py); at most
`--rows` rows, drawn at random. Three folds; a row per set and model: mean held-out deviance, how
much gbmap's is higher than the model's with the standard error over rows, and the time per fit.
The deviance is that of the family; for a quantile it is twice the check loss. Boosting has no
Tweedie loss, so its Poisson loss is used there.
Classes in order have -2 log-likelihood; boosting takes them as classes without order.
Explainable boosting machines have 4 outer bags instead of 14.

With `--times`, the processor time of fits of each family to simulated rows with ten features, by
one thread, without compilation, and as a multiple of the logistic fit's time. The classes are
four. A row per call (ten boosts of gbmap with a given penalty; default calls of gbmap and costnet)
and family, in results/family_times.csv. m is the number of boosts, which default calls choose.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from interpret.glassbox import ExplainableBoostingRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold

import lodim as ld
from lodim import family as families
from lodim.fitting.fit_model import model_of

FOLDS = 3
RESULTS = Path(__file__).resolve().parent / "results/responses.csv"
SETS = {  # family, parameter, response; from lodim, statsmodels or a folder
    "randhie": ("poisson", {}, "mdvis"),
    "abalone": ("poisson", {}, "rings"),
    "fair": ("tweedie", {"power": 1.5}, "affairs"),
    "liver_disorders": ("tweedie", {"power": 1.5}, "drinks"),
    "german_credit": ("gamma", {}, "credit_amount"),
    "concrete": ("gamma", {}, "strength"),
    "diabetes": ("gamma", {}, "progression"),
    "air_quality_gbmap": ("gamma", {}, "CO_GT"),
    "california_housing": ("quantile", {"quantile": 0.9}, "MedHouseVal"),
    "autompg": ("quantile", {"quantile": 0.9}, "mpg"),
    "engel": ("quantile", {"quantile": 0.1}, "foodexp"),
    "wine_red": ("ordinal", {}, "quality"),
    "marriage": ("ordinal", {}, "rate_marriage"),
    "anes96": ("ordinal", {}, "PID"),
}
OTHER_NAMES = {"marriage": "fair"}  # of sets in statsmodels
PROBABILITIES = {"ordinal": "prob"}  # type of prediction; "response" otherwise
LOSSES = {"poisson": "poisson", "tweedie": "poisson", "gamma": "gamma", "quantile": "quantile"}
TIMES = RESULTS.with_name("family_times.csv")
TIMED = {  # calls, and how often they are repeated: the least time counts
    "gbmap, m=10": ("gbmap", {"m": 10, "lambda_": 1e-3}, 5),
    "gbmap": ("gbmap", {}, 2),
    "costnet": ("costnet", {}, 2),
}
OBJECTIVES = {
    "poisson": "poisson_deviance",
    "gamma": "gamma_deviance",
    "tweedie": "tweedie_deviance:variance_power=1.5",
}


def rows_of(name, folder, most):
    """Return a set's rows with the response "y"; None if its file is not in the folder."""
    response = SETS[name][2]
    if name in ("randhie", "fair", "engel", "marriage", "anes96"):
        df = getattr(sm.datasets, OTHER_NAMES.get(name, name)).load_pandas().data
    elif name in set(ld.data()["name"]):
        df = ld.data(name)
    else:
        if folder is None or not (folder / f"{name}.csv").exists():
            return None
        df = pd.read_csv(folder / f"{name}.csv").drop(columns="selector", errors="ignore")
    df = df.rename(columns={response: "y"}).dropna()
    if len(df) > most:
        df = df.iloc[np.random.default_rng(0).permutation(len(df))[:most]]
    return df.reset_index(drop=True)


def lodim_model(name, family, parameter):
    """Return a function that fits a model of lodim by default and predicts other rows."""

    def predict(train, test):
        fit = getattr(ld, name)("y ~ .", train, family=family, **parameter)
        return fit.predict(
            test, PROBABILITIES.get(family, "response"), new_levels="missing"
        ).to_numpy()

    return predict


def sklearn_model(estimator, dummies):
    """Return a function that fits an estimator of scikit-learn's kind and predicts other rows."""

    def predict(train, test):
        both = pd.concat([train, test]).drop(columns="y")
        if dummies:
            both = pd.get_dummies(both, drop_first=True, dtype=float)
        X, new = both[: len(train)], both[len(train) :]
        fit = estimator.fit(X, train["y"])
        return fit.predict_proba(new) if hasattr(fit, "predict_proba") else fit.predict(new)

    return predict


def models_of(family, parameter):
    """Return the models to compare for a family, by name."""
    models = {name: lodim_model(name, family, parameter) for name in ("gbmap", "glm")}
    if family in model_of(ld.costnet).families:
        models["costnet"] = lodim_model("costnet", family, parameter)
    if family == "ordinal":
        boosting = HistGradientBoostingClassifier(random_state=0)
    else:
        boosting = HistGradientBoostingRegressor(
            loss=LOSSES[family],
            random_state=0,
            **{k: v for k, v in parameter.items() if k == "quantile"},
        )
    models["boosting"] = sklearn_model(boosting, True)
    if family in OBJECTIVES:
        ebm = ExplainableBoostingRegressor(
            objective=OBJECTIVES[family], outer_bags=4, n_jobs=1, random_state=0
        )
        models["ebm"] = sklearn_model(ebm, False)
    return models


def losses_of(name, df):
    """Return the held-out deviance per row of each model, (n,), and its seconds per fit."""
    family, parameter, _ = SETS[name]
    code = np.unique(df["y"], return_inverse=True)[1] if family == "ordinal" else df["y"]
    known = families.make(family, df["y"].nunique(), *parameter.values())
    losses, seconds = {}, {}
    for model, predict in models_of(family, parameter).items():
        losses[model], seconds[model] = np.empty(len(df)), 0.0
        for train, test in KFold(FOLDS, shuffle=True, random_state=0).split(df):
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mean = predict(df.iloc[train], df.iloc[test])
            seconds[model] += (time.process_time() - start) / FOLDS
            y = np.asarray(code, float)[test]
            mean = np.maximum(mean, 1e-12) if family == "ordinal" else mean
            losses[model][test] = known.deviance(y, known.score(mean))
    return losses, seconds


def simulated(n):
    """Return n rows of ten features, and a dict of responses by family."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.maximum(X[:, 3], 0) + 0.5 * X[:, 4]
    noisy, mean = f + 0.5 * rng.logistic(size=n), np.exp(0.3 * f)
    quarters = np.searchsorted(np.quantile(noisy, [0.25, 0.5, 0.75]), noisy)
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(10)]), {
        "binomial": quarters // 2,
        "multinomial": quarters,
        "ordinal": quarters,
        "gaussian": noisy,
        "huber": noisy,
        "quantile": noisy,
        "poisson": rng.poisson(mean),
        "gamma": rng.gamma(2.0, mean),
        "tweedie": rng.gamma(rng.poisson(mean) + 1e-9, 1.0),
    }


def family_times(n):
    """Print and return processor times of each call and family, for n rows."""
    X, responses = simulated(n)
    table = []
    for call, (name, settings, repeats) in TIMED.items():
        logistic = None
        for family, y in responses.items():
            model, df = getattr(ld, name), X.assign(y=y)
            if family not in model_of(model).families:
                continue
            how = {"family": family, "threads": 1, "progress": False, **settings}
            how |= {"quantile": {"quantile": 0.9}, "tweedie": {"power": 1.5}}.get(family, {})
            seconds = []
            for _ in range(1 + repeats):  # the first call compiles
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fit = model("y ~ .", df, **how)
                seconds.append(time.process_time() - start)
            least = min(seconds[1:])
            logistic = logistic or least
            row = {"call": call, "family": family, "seconds": least, "ratio": least / logistic}
            table.append(row | {"m": getattr(fit.settings, "m", None)})
            print(
                pd.DataFrame(table[-1:]).to_string(index=False, header=len(table) < 2), flush=True
            )
    return pd.DataFrame(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--times", action="store_true")
    args = parser.parse_args()
    if args.times:
        family_times(args.rows or 5000).to_csv(TIMES, index=False, float_format="%.4g")
        return
    table = []
    for name in args.sets.split(","):
        df = rows_of(name, args.folder, args.rows or 1000)
        if df is None:
            print(f"{name}: not in --folder")
            continue
        losses, seconds = losses_of(name, df)
        for model, loss in losses.items():
            higher = losses["gbmap"] - loss
            row = {"set": name, "family": SETS[name][0], "n": len(df), "p": df.shape[1] - 1}
            row |= {"model": model, "deviance": loss.mean(), "gbmap_higher_by": higher.mean()}
            row |= {"std_error": higher.std(ddof=1) / np.sqrt(len(df)), "seconds": seconds[model]}
            table.append(row)
        found = pd.DataFrame(table)
        print(found[found["set"] == name].to_string(index=False, header=len(table) < 6), flush=True)
        found.to_csv(args.out, index=False, float_format="%.5g")
    for model, rows in found[found["model"] != "gbmap"].groupby("model"):
        within = rows["gbmap_higher_by"] <= rows["std_error"]
        better = rows["gbmap_higher_by"] < -rows["std_error"]
        print(
            f"gbmap against {model}: {better.sum()} of {len(rows)} sets better by more than a "
            f"standard error, {(~within).sum()} worse"
        )


if __name__ == "__main__":
    main()
