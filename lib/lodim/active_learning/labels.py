"""Checks of labels and of the data frames given to `active`."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lodim.errors import DataError
from lodim.text import counted, join_words


def check_frames(response, labelled, pool, test):
    """Raise DataError unless data frames given to an active learner can be used together.

    labelled, test : data frames without missing values of `response`, or None
    pool : data frame of unlabelled rows"""
    for name, frame in (("labelled", labelled), ("pool", pool), ("test", test)):
        if not isinstance(frame, pd.DataFrame) and not (frame is None and name != "pool"):
            kind = f"{type(frame).__module__}.{type(frame).__name__}".removeprefix("builtins.")
            raise DataError(f"{name} must be a pandas DataFrame, with row labels, not {kind}")
    if test is not None and response not in test:
        raise DataError(
            f"test must have the column {response!r}, from which the accuracy is computed"
        )
    for name, frame in (("labelled", labelled), ("test", test)):
        if frame is not None and response in frame and frame[response].isna().any():
            row = f"row {plain(frame.index[frame[response].isna()][0])!r} has none: leave it out"
            raise DataError(f"every row of {name} must have a label; {row}")
    if not pool.index.is_unique:
        repeated = plain(pool.index[pool.index.duplicated()][0])
        raise DataError(
            f"the row labels of the pool must differ; {repeated!r} occurs twice: use "
            "pool.reset_index(drop=True)"
        )
    if labelled is None:
        return
    labels = pool.index.intersection(labelled.index)
    columns = [c for c in pool.columns.intersection(labelled.columns) if c != response]
    if len(labels) and columns:
        known = labelled.loc[~labelled.index.duplicated(), columns].loc[labels].astype(object)
        other = pool.loc[labels, columns].astype(object)
        same = ((known == other) | (known.isna() & other.isna())).all(axis=1)
        if same.any():
            row, n = plain(labels[same.to_numpy(bool)][0]), counted(same.sum(), "such row")
            raise DataError(
                f"row {row!r} is both labelled and in the pool ({n}): leave labelled "
                "rows out of the pool, as in pool.drop(index=labelled.index)"
            )


def declare_levels(response, *frames):
    """Give each text column the same categories in several data frames; return the frames.

    response : column that stays unchanged
    frames : data frames or None, the training rows first"""
    known = [frame for frame in frames if frame is not None]
    new = {}
    for name in known[0].columns.drop(response, errors="ignore"):
        columns = [frame[name] for frame in known if name in frame]
        if known[0].columns.is_unique and all(_is_text(x) for x in columns):
            levels = pd.unique(pd.concat([_levels(x) for x in columns]))
            first, alike = columns[0].dtype, len({x.dtype for x in columns}) == 1
            declared = isinstance(first, pd.CategoricalDtype)
            if len(levels) > len(_levels(columns[0])) or (declared and not alike):
                ordered = declared and first.ordered
                new[name] = pd.CategoricalDtype(_in_order(levels, columns), ordered)
    return tuple(
        frame if frame is None else frame.astype({k: v for k, v in new.items() if k in frame})
        for frame in frames
    )


def _is_text(x):
    if isinstance(x.dtype, pd.CategoricalDtype | pd.StringDtype):
        return True
    return x.dtype == object and all(isinstance(value, str) for value in x.dropna().unique())


def _levels(x):
    if isinstance(x.dtype, pd.CategoricalDtype):
        return pd.Series(x.cat.categories, dtype=object)
    return pd.Series(x.dropna().unique(), dtype=object)


def _in_order(levels, columns):
    if any(isinstance(x.dtype, pd.CategoricalDtype) for x in columns):
        longest = max((_levels(x) for x in columns), key=len)
        return [*longest, *[level for level in levels if level not in set(longest)]]
    return sorted(levels)


def to_series(labels, response):
    """Return labels (Series, mapping, or frame with column `response`) as a Series by row label."""
    if isinstance(labels, pd.DataFrame):
        if response not in labels:
            raise DataError(f"a data frame of labels must have the column {response!r}")
        labels = labels[response]
    if not isinstance(labels, pd.Series | Mapping):
        raise DataError(
            "labels must be a Series or a mapping by row label, such as "
            f"pd.Series(['yes', 'no'], index=rows.index), not {type(labels).__name__}"
        )
    labels = pd.Series(labels)
    if labels.empty:
        raise DataError("labels must have at least one row, not none")
    if not labels.index.is_unique:
        repeated = labels.index[labels.index.duplicated()][0]
        raise DataError(
            f"labels must have one label per row; row {plain(repeated)!r} is labelled twice"
        )
    return labels


def check_labels(labels, learner, new):
    """Check labels given to an active learner; return the classes as a Series by row label.

    labels : classes of rows in the learner's pool
    new : whether to accept new classes"""
    labels = to_series(labels, learner.response)
    unknown = labels.index.difference(learner.pool.index)
    if len(unknown):
        known = "labelled already" if unknown[0] in learner.labelled.index else "not in the pool"
        raise DataError(f"row {plain(unknown[0])!r} is {known}")
    if labels.isna().any():
        missing = plain(labels.index[labels.isna()][0])
        raise DataError(
            f"row {missing!r} has no label: leave it out of the labels, or give its class"
        )
    known = pd.unique(learner.labelled[learner.response].dropna())
    unseen = labels[~labels.isin(known)]
    if len(unseen) and not new and learner.fit is not None:
        raise DataError(
            f"row {plain(unseen.index[0])!r} is labelled {plain(unseen.iloc[0])!r}, but labelled "
            f"rows are {join_words([repr(plain(c)) for c in known])}; teach(..., new=True) "
            "accepts new classes"
        )
    same = {c: c for c in known}  # 1 and True are one class
    return labels.map(lambda c: same.get(c, c))


def plain(label):
    """Return a row label (an entry of an index) as a plain Python value, for messages."""
    return label.item() if isinstance(label, np.generic) else label
