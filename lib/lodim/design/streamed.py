"""Parts of the rows of data that are not in memory, read anew in each pass over them.

What is computed of a part is what `TableParts` computes of the same rows in memory, by the same
functions: both give equal bits.
"""

from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from lodim.design import columns, parts
from lodim.design.column_kernels import ALL, read_only
from lodim.design.columns import Table
from lodim.design.places import Cutter, Places, ahead, changed, frame_of
from lodim.design.rows import RowInputs, cut_input, input_values


@dataclass(frozen=True, eq=False)
class SourceParts:
    """The parts of a source's complete rows, read anew in each pass.

    table : Table without columns; n_rows : rows of the source, complete or not
    known : dict of Facts by name from the first pass, or None
    """

    places: Places
    table: Table
    n_rows: int
    known: dict | None

    @property
    def n(self):
        """Number of complete rows."""
        return self.table.n

    in_one = False

    @property
    def positive_weight(self):
        """(n,) bool, the rows whose weight is above zero; None where all are."""
        return self.table.positive_weight

    def facts(self, wanted):
        """Facts of columns by name."""
        if self.known is not None:
            return self.known
        work = partial(parts.learn_facts, wanted=wanted)
        return parts.merge_facts(self.map(work, wanted.names), wanted)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in one pass."""
        with closing(self.tables(list(names))) as tables:
            return [work(span, table) for span, table in tables]

    def tasks(self, work, names):
        """A call without arguments for each part, which can be pickled: together they are `map`."""
        return [
            partial(part_task, span, self.places, self._bare(span), work, list(names))
            for span in parts.spans(self.table.rows, self.n)
        ]

    def _bare(self, span):
        """The table of a part without its columns, and with the labels that it needs alone."""
        table = parts.of_rows(self.table, span, {})
        starts = [run[0] for run in table.index.runs]
        lo, hi = bisect_right(starts, span.start) - 1, bisect_right(starts, span.stop - 1)
        return replace(table, index=replace(table.index, runs=table.index.runs[lo:hi]))

    def tables(self, names):
        """The parts as (span, table), in one pass over some columns."""
        spans = parts.spans(self.table.rows, self.n)
        if not names:
            yield from ((span, parts.of_rows(self.table, span, {})) for span in spans)
            return
        self.places.source.check_unchanged()
        cutter = Cutter()
        with closing(ahead(self.places.read(names))) as read_ahead:
            for span in spans:
                while cutter.stop < span.stop:
                    cutter.put(*self._next(read_ahead))
                yield span, parts.of_rows(self.table, span, cutter.take(span, names))
            stop = max((stop for _, stop, _ in read_ahead), default=cutter.stop)
        self.places.source.check_unchanged()
        if stop != self.n_rows:
            raise changed()

    def _next(self, read_ahead):
        found = next(read_ahead, None)
        if found is None or found[1] > self.n_rows:
            raise changed()
        return found

    def gather(self, rows, names):
        """A table of the complete rows at some positions; None: of all."""
        picked = self.map(partial(_pick, rows=rows), names)
        table = self.table
        held = {k: columns.concat([part[k] for part in picked]) for k in names}
        rows = np.arange(self.n) if rows is None else rows
        given = {key: getattr(table, key) for key in ("weights", "positive_weight")}
        given = {key: None if x is None else x[rows] for key, x in given.items()}
        places = table.rows[rows] if table.rows.size else rows
        index = table.index[places]
        return replace(table, columns=held, rows=read_only(ALL), n=len(rows), index=index, **given)


@dataclass(frozen=True, eq=False)
class PartReader:
    """Makes the batch of a part of a source, in any process: it can be pickled.

    design : Design
    places : Places
    stretches : (n_parts, 2) int64, positions of the first row of each part and after its last
    weights, offset : names of columns, or arrays of all N rows of the source, or None
    """

    design: object
    places: Places
    stretches: np.ndarray
    weights: object
    offset: object

    @classmethod
    def from_parts(cls, design, learnt, weights, offset):
        """For the SourceParts that a design has learnt from, and what was given of the rows."""
        spans = parts.spans(learnt.table.rows, learnt.n)
        stretches = np.array([(span.start, span.stop) for span in spans])
        weights, offset = input_values(weights, "weights"), input_values(offset, "offset")
        return cls(design, learnt.places, stretches, weights, offset)

    def __call__(self, k):
        """The Batch of part k: response, weights and offset as in that of all rows."""
        start, stop = self.stretches[k].tolist()
        weights = cut_input(self.weights, "weights", start, stop)
        offset = cut_input(self.offset, "offset", start, stop)
        design, named = self.design, [v for v in (weights, offset) if isinstance(v, str)]
        span = parts.Span(k, 0, start, stop, ALL, stop - start)
        read = self.places.columns(design.columns_needed(named), span)
        frame = frame_of(read, pd.RangeIndex(start, stop))
        inputs, response = RowInputs.read(frame, weights, offset), design.response is not None
        return design.batch_of(frame, inputs, response, design.known_levels("error"), part=True)


def part_task(span, places, table, work, names):
    """What `work` makes of one part, for a pass whose parts are shared among processes.

    Parameters
    ----------
    span : parts.Span
    places : Places
    table : Table
        Of the part, without columns; see `SourceParts.tasks`.
    work, names : as `SourceParts.map` takes them; the work can be pickled
    """
    return work(span, replace(table, columns=places.columns(names, span)))


def _pick(span, table, rows):
    """The columns of a part in those of its rows that are wanted."""
    if rows is None:
        here = table.rows if table.rows.size else slice(None)
    else:
        lo, hi = np.searchsorted(rows, [span.first, span.first + span.n])
        here = rows[lo:hi] - span.first
        here = table.rows[here] if table.rows.size else here
    return {name: columns.at(column, here) for name, column in table.columns.items()}
