"""A fit elsewhere: as code and query, as a page, on frames of other packages, in scikit-learn."""

import decimal
import pathlib
import pickle
import tempfile
import traceback
import warnings

import hostile
import numpy as np
import pandas as pd
from hostile import pick

import lodim as ld

CLASSES = (
    "CostnetClassifier", "CostnetRegressor", "GbmapClassifier", "GbmapRegressor", "GlmClassifier",
    "GlmRegressor", "MelmClassifier", "ProsetClassifier", "ProsetRegressor", "RiprClassifier",
    "RiprClusterer", "RiprRegressor",
)  # fmt: skip
ROWS = 12  # that are predicted one after the other


class TheirsError(ld.LodimError):
    """What is refused as the help says, or by scikit-learn's own checks, which its users know."""


def expected(case, fit, frame):
    """What predict() says as numbers (n, K), or None where it refuses."""
    type = "response" if getattr(fit, "levels", None) is None else "prob"
    out = case.call(f"predict {type}", fit.predict, frame, type)
    return None if out is None else out.to_numpy(float).reshape(len(frame), -1)


def plain(value):
    """A value as plain Python has it; None where it is missing."""
    if pd.isna(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return float(value) if isinstance(value, decimal.Decimal) else value


def differ(found, wanted, single=False):
    """Whether answers differ by more than rounding, or are missing elsewhere."""
    if found.shape != wanted.shape or (np.isnan(found) != np.isnan(wanted)).any():
        return True
    scale = max(1.0, np.nanmax(np.abs(wanted), initial=0.0))
    return bool(np.nanmax(np.abs(found - wanted), initial=0.0) > (1e-3 if single else 1e-7) * scale)


def written(case, model, fit, frame):
    """As Python, SQL and ONNX the fit says what predict() says."""
    if not frame.columns.is_unique or not hasattr(fit, "design") or fit.design.offset_given:
        return
    rows, single = frame.iloc[:ROWS].reset_index(drop=True), fit.arguments.get("dtype") == "float32"
    wanted = expected(case, fit, rows)
    text = case.call("to_python", fit.to_python)
    query = case.call("to_sql", fit.to_sql, pick(case.rng, ("duckdb", "duckdb", "postgres")))
    case.call("to_onnx", fit.to_onnx)
    if wanted is None:
        return
    if text is not None:
        found = case.call("predict(row)", in_python, text, rows)
        if found is not None and differ(found, wanted, single):
            case.record.blame("silent difference", f"{model.__name__} as Python")
    if query is not None and not too_large(rows) and (con := table_of(rows)) is not None:
        found = case.call("query", lambda: in_duckdb(con, query, rows))
        if found is not None and differ(found, wanted, single):
            case.record.blame("silent difference", f"{model.__name__} as SQL")


def too_large(rows):
    """Whether numbers are beyond 1e100, which what is written refuses."""
    values = rows.astype(object).to_numpy().ravel()
    return any(isinstance(v, int | float | np.number) and abs(v) > 1e100 for v in values)


def in_python(text, rows):
    """Answers of the module, row by row."""
    scope: dict = {}
    exec(compile(text, "model.py", "exec"), scope)
    records = [{k: plain(v) for k, v in row.items()} for row in rows.to_dict("records")]
    if too_large(rows):
        raise TheirsError("predict(row) refuses numbers beyond 1e100")
    answers = [scope["predict"](row) for row in records]
    return np.array([[*a.values()] if isinstance(a, dict) else [a] for a in answers], float)


def table_of(rows):
    """A connection with the rows as a table, or None where DuckDB cannot hold them."""
    import duckdb

    con = duckdb.connect()
    try:
        con.register("frame", rows.assign(**{"row of the test": range(len(rows))}))
        con.execute("CREATE TABLE data AS SELECT * FROM frame")
        kinds = con.execute("SELECT * FROM data LIMIT 0").description
    except Exception:
        return None
    texts = [name for name in rows if rows[name].dtype == object]
    other = [kind[0] for kind in kinds[:-1]] != [*rows]  # it takes a and A for one, and cuts at NUL
    return None if other or any(k[1] != "STRING" for k in kinds if k[0] in texts) else con


def in_duckdb(con, query, rows):
    """Answers of the query, by the order of the rows."""
    with con:
        result = con.execute(query).df().sort_values("row of the test")
    return result.drop(columns=["row of the test", *rows.columns]).to_numpy(float)


def shown(case, fit, frame):
    """The page of the fit, with data and without."""
    with tempfile.TemporaryDirectory() as folder:
        for data in (frame, None):
            file = pathlib.Path(folder, "page.html")
            case.call("report", fit.report, file, data)
            if file.exists():
                text = file.read_text()
                file.unlink()
                if text.count("<script") != text.count("</script"):
                    case.record.blame("silent difference", "report: scripts begin and do not end")


def unseen(case, fit, frame):
    """A level that training had not is as a missing value, where that is asked for."""
    texts = [
        name for name in frame if isinstance(frame[name], pd.Series) and frame[name].dtype == object
    ]
    if not texts or not hasattr(fit, "design") or fit.design.offset_given:
        return
    name = pick(case.rng, texts)
    never, gone = (frame.assign(**{name: value}) for value in ("never seen", None))
    found = case.call("predict new", fit.predict, never, new_levels="missing")
    wanted = case.call("predict missing", fit.predict, gone)
    if found is not None and wanted is not None and not found.equals(wanted):
        case.record.blame("silent difference", "predict(new_levels='missing')")


def of_other_frames(case, model, formula, frame, arguments, fit):
    """A fit to a frame of polars or pyarrow is that to the frame of pandas."""
    lost = any(  # polars has no order of categories of pandas, and makes numbers of theirs
        kind.ordered or kind.categories.dtype.kind in "biuf"
        for kind in frame.dtypes
        if isinstance(kind, pd.CategoricalDtype)
    )
    other = hostile.arrow_of(frame) if lost or case.chance(0.5) else hostile.polars_of(frame)
    if other is None:
        return
    again = case.call("fit of another frame", model, formula, other, **arguments)
    for name in ("tidy", "glance"):
        if again is not None:
            case.call(f"{name} of another frame", getattr(again, name))
    if again is None or fit is None or hasattr(again, "fits"):
        return
    given = {} if not again.design.offset_given else {"offset": frame["o"].to_numpy()}
    for name in ("augment", "evaluate"):
        case.call(f"{name} of another frame", getattr(again, name), other, **given)
    found = case.call("predict another frame", again.predict, other, **given)
    wanted = case.call("predict", fit.predict, frame, **given)
    if found is None or wanted is None:
        return
    if type(found).__module__.split(".")[0] != type(other).__module__.split(".")[0]:
        case.record.blame("silent difference", "predict gives a frame of another package")
    found, wanted = (np.asarray(each).reshape(len(frame), -1) for each in (found, wanted))
    if wanted.dtype.kind == "f" and differ(found.astype(float), wanted):
        case.record.blame("silent difference", f"{model.__name__} of another frame")


# scikit-learn ------------------------------------------------------------------------------------


def theirs(call, *args, **kwargs):
    """What a call returns; what scikit-learn refuses is refused, and its warnings are its own."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="sklearn")
            return call(*args, **kwargs)
    except (ValueError, TypeError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        if "sklearn" in last and "lodim" not in last:
            raise TheirsError(str(error)) from None
        raise


def estimated(case, frame, y, odd, cheap):
    """An estimator of scikit-learn, fitted to rows and asked for what it can."""
    from sklearn.base import clone

    import lodim.sklearn as estimators

    rng, name = case.rng, pick(case.rng, CLASSES)
    known = getattr(estimators, name)().get_params()
    model = name.removesuffix("Regressor").removesuffix("Classifier").removesuffix("Clusterer")
    given = {k: v for k, v in cheap[getattr(ld, model.lower())].items() if k in known}
    if case.chance(0.3):
        one = pick(rng, [*known])
        given[one] = odd(rng, one)
    X, response = frame.drop(columns=[y, "w", "o"]), frame[y]
    if case.chance(0.2):
        X = hostile.polars_of(X) if case.chance(0.5) else X.to_numpy()
    if X is None or not isinstance(response, pd.Series):
        return
    rows = {}
    if case.chance(0.3):
        rows["sample_weight"] = pick(rng, (frame["w"], frame["w"].to_numpy(), odd(rng, "n")))
    if case.chance(0.2) and name != "RiprClusterer":
        rows["groups"] = rng.integers(0, 4, len(frame))
    said, estimator = name, getattr(estimators, name)(**given)
    case.said(f"   {name} {given!a} {[*rows]}")
    if case.call(f"{said}.fit", theirs, estimator.fit, X, response, **rows) is None:
        return
    first = case.call(f"{said}.predict", theirs, estimator.predict, X)
    for method in ("predict_proba", "decision_function", "transform"):
        if hasattr(estimator, method):
            case.call(f"{said}.{method}", theirs, getattr(estimator, method), X)
    case.call(f"{said}.clone", clone, estimator)
    again = case.call(f"{said}.pickle", lambda: pickle.loads(pickle.dumps(estimator)))
    second = None if again is None else case.call(f"{said}.predict again", again.predict, X)
    if first is not None and second is not None:
        same = pd.Series(first).equals(pd.Series(second))
        if len(first) != len(frame) or not same:
            case.record.blame("silent difference", f"{said}: predictions after a pickle")
    case.call(f"{said}.predict odd", theirs, estimator.predict, odd(rng, "data"))
