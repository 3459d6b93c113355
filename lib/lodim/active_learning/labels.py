"""Checks of labels, and of the frames that a learner starts with."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from lodim.errors import DataError
from lodim.text import join_words


def check_frames(response, labelled, pool, test):
    """Raise unless rows of the frames can be told apart, and test rows have labels."""
    for name, frame in (("labelled", labelled), ("pool", pool), ("test", test)):
        if not isinstance(frame, pd.DataFrame) and not (frame is None and name != "pool"):
            kind = f"{type(frame).__module__}.{type(frame).__name__}".removeprefix("builtins.")
            raise DataError(f"{name} must be a pandas DataFrame, with row labels, not {kind}")
    if test is not None and response not in test:
        raise DataError(f"test lacks the column {response!r}: accuracy could not be measured")
    if test is not None and test[response].isna().any():
        row = plain(test.index[test[response].isna()][0])
        raise DataError(f"row {row!r} of test has no label: nothing could be said of it")
    if not pool.index.is_unique:
        repeated = plain(pool.index[pool.index.duplicated()][0])
        raise DataError(f"the pool has the row label {repeated!r} twice: labels could not be told")
    if labelled is not None:
        _check_apart(response, labelled, pool)


def _check_apart(response, labelled, pool):
    """Raise where a row is both labelled and in the pool: of one row label, with equal values."""
    labels = pool.index.intersection(labelled.index)
    columns = [c for c in pool.columns.intersection(labelled.columns) if c != response]
    if not len(labels) or not columns:
        return
    known = labelled.loc[~labelled.index.duplicated(), columns].loc[labels].astype(object)
    other = pool.loc[labels, columns].astype(object)
    same = ((known == other) | (known.isna() & other.isna())).all(axis=1)
    if same.any():
        row, n = plain(labels[same.to_numpy(bool)][0]), int(same.sum())
        raise DataError(
            f"row {row!r} is both labelled and in the pool ({n} such rows): leave labelled rows "
            "out of the pool, as in pool.drop(index=labelled.index)"
        )


def to_series(labels, response):
    """Labels as a Series by row label, each row once."""
    if isinstance(labels, pd.DataFrame):
        if response not in labels:
            raise DataError(f"labels are a frame without the column {response!r}")
        labels = labels[response]
    if not isinstance(labels, pd.Series | Mapping):
        raise DataError(
            "labels must be a Series or a mapping by row label, such as "
            f"pd.Series(['yes', 'no'], index=rows.index), not {type(labels).__name__}"
        )
    labels = pd.Series(labels)
    if labels.empty:
        raise DataError("there are no labels to learn from")
    if not labels.index.is_unique:
        repeated = labels.index[labels.index.duplicated()][0]
        raise DataError(f"row {plain(repeated)!r} is labelled twice")
    return labels


def check_labels(labels, learner, new):
    """Labels as a Series by row label of the pool; `new` says that classes may be new."""
    labels = to_series(labels, learner.response)
    unknown = labels.index.difference(learner.pool.index)
    if len(unknown):
        known = "labelled already" if unknown[0] in learner.labelled.index else "not in the pool"
        raise DataError(f"row {plain(unknown[0])!r} is {known}")
    if labels.isna().any():
        missing = plain(labels.index[labels.isna()][0])
        raise DataError(f"row {missing!r} has no label")
    known = pd.unique(learner.labelled[learner.response].dropna())
    unseen = labels[~labels.isin(known)]
    if len(unseen) and not new and learner.fit is not None:
        raise DataError(
            f"row {plain(unseen.index[0])!r} is said to be {plain(unseen.iloc[0])!r}, and "
            f"labelled rows are {join_words([repr(plain(c)) for c in known])}; new=True "
            "takes other classes"
        )
    return labels


def plain(label):
    """A row label as a plain Python value."""
    return label.item() if isinstance(label, np.generic) else label
