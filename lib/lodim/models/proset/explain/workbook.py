"""What the workbooks of proset hold: Figure 4.5 of Ruf (2022), formatted."""

import pandas as pd

from lodim.report import excel

FEATURE, ESTIMATE = "4D7C5A", "7A4E79"  # heads: features, parts of the estimate
FILLS = {"query": "FFF2CC", "prior": "E7E6E6", "others": "E7E6E6"}
OWN = ("role", "batch", "row", "members", "target", "prototype_weight", "similarity", "impact",
       "dominant")  # fmt: skip
FORMATS = {"prototype_weight": "0.00", "similarity": "0.000", "impact": "0.00"}


def of_explanation(e, path):
    """The contributions with features, and a sheet that says of what."""
    frame = e.frame
    parts = [c for c in frame if c not in OWN and c not in e.features]
    digits = "0.000" if isinstance(e.prediction, pd.Series) else "General"
    formats = FORMATS | {c: digits if digits != "General" else _format(frame[c]) for c in parts}
    sheet = excel.Sheet(
        "explanation", _worded(frame), _worded_keys(formats | _formats(frame, e.features)),
        scales=["impact"], heads=_worded_keys(
            {c: ESTIMATE for c in parts} | {c: FEATURE for c in e.features}
        ),
        rows={k: FILLS[role] for k, role in enumerate(frame["role"]) if role in FILLS}, fixed=3,
    )  # fmt: skip
    notes = e.report().notes
    about = [("Explanation of row", str(e.label)), ("Model", e.call), *e.header()]
    about += [("Note", note) for note in notes]
    excel.write(path, [sheet, excel.Sheet("about", pd.DataFrame(about, columns=["what", "value"]))])


def of_prototypes(fit, frame, path):
    """All prototypes, and a sheet with the features' weights."""
    features = [c for c in frame if c not in OWN]
    heads = {c: FEATURE for c in features}
    sheet = excel.Sheet(
        "prototypes", _worded(frame), _worded_keys(FORMATS | _formats(frame, features)),
        scales=["prototype weight"], heads=heads, fixed=2,
    )  # fmt: skip
    tidy = fit.tidy().sort_values("std_estimate", ascending=False, kind="stable")
    tidy = tidy.rename(columns={"estimate": "weight", "std_estimate": "weight per SD"})
    weights = excel.Sheet(
        "features", tidy, _formats(tidy, ["weight", "weight per SD"]), scales=["weight per SD"]
    )
    about = pd.DataFrame(
        [("Model", fit.call), *((k, str(v)) for k, v in fit.glance().iloc[0].items())],
        columns=["what", "value"],
    )
    excel.write(path, [sheet, weights, excel.Sheet("about", about)])


def _worded(frame):
    """Column names as words."""
    return frame.rename(columns=lambda c: c.replace("_", " ") if c in OWN else c)


def _worded_keys(mapping):
    return {k.replace("_", " ") if k in OWN else k: v for k, v in mapping.items()}


def _formats(frame, names):
    return {name: _format(frame[name]) for name in names}


def _format(values):
    """Decimals that show four digits of a column's largest number; none for whole numbers."""
    values = pd.to_numeric(values, errors="coerce").dropna()
    if values.empty or (values == values.round()).all():
        return "General"
    size = values.abs().max()
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3
    while size < 10.0 ** (2 - digits) and size < 1 and digits < 8:
        digits += 1
    return "0." + "0" * digits if digits else "0"
