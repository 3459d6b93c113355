"""The complete rows of some data: what stands beside their features, and their parts."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from lodim.design.column_kernels import weight_unit
from lodim.design.columns import Table
from lodim.design.parts import TableParts
from lodim.design.response import RowInputs, read_complete


@dataclass(frozen=True, eq=False)
class Rows:
    """What is known of the rows of some data before anything is learnt of their features.

    inputs : of the complete rows; table : their answers, at least; parts : all of their columns
    rows : (n,) int64, positions of the complete rows in `index`, the labels of all N rows
    n_dropped, n_incomplete : as in a Design
    streamed : whether the parts are read anew in each pass
    """

    inputs: RowInputs
    table: Table
    parts: object
    rows: np.ndarray
    index: pd.Index
    n_dropped: int
    n_incomplete: int
    streamed: bool = False


def read_rows(frame, wanted, answers, beside, missing):
    """The rows of a frame in memory.

    Parameters
    ----------
    frame : columns.Frame
    wanted : facts.Wanted
    answers : list of str, columns of the response
    beside : what `RowInputs.read` takes, names or arrays
    missing : as `Design.learn` takes it
    """
    inputs = RowInputs.read(frame, *beside)
    read = read_complete(frame, list(wanted.names), answers, inputs, missing, learning=True)
    table, rows, *numbers = read
    inputs = inputs.at(rows)
    table.positive_weight, table.weights = inputs.positive_weight, inputs.weights
    table.weight_unit = weight_unit(inputs.weights)
    return Rows(inputs, table, TableParts(table), rows, frame.index, *numbers)
