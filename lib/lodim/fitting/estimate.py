"""estimate(): predict the memory, disk space and passes of a call."""

import shutil
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from lodim.design import factors
from lodim.design.batch import Batch
from lodim.design.chunks import count_rows
from lodim.design.design import columns_read
from lodim.design.features import fits_memory, free_memory
from lodim.design.frame import read_frame
from lodim.design.rows import INPUTS
from lodim.engine.tiles import TILE, count
from lodim.fitting.argument_names import with_known_arguments
from lodim.fitting.fit_model import SCRATCH, model_of, prepare
from lodim.fitting.model import Needs
from lodim.formula.formula import parse, written
from lodim.report.tables import Report
from lodim.sources import ROWS_PER_CHUNK, read_source
from lodim.text import size_in_bytes
from lodim.typing import Data, Model, P

UNKNOWN = Needs(0, 0, None)  # of a model that cannot tell what it needs
LOOK = 16_384  # largest number of sampled rows


@dataclass(frozen=True)
class Estimate:
    """Expected resources of a call of a model function, returned by `estimate`.

    Attributes
    ----------
    model : str
    rows, columns : int
        Number of complete rows and of features.
    tile_bytes : int
        Size of the features of all rows.
    scratch : str or None
        Folder of a file that holds the features; None if they are in memory.
    free_bytes : int
        Free space in that folder or in memory.
    memory_bytes : int
        Peak memory of the call in this process, without the data frame.
    source_passes, source_bytes : int or None
        Number of times that files are read, and their size; None for data in memory.
    tile_passes : (int, int) or None
        Usual range of passes over all features, without cross-validation.
    workers : int
        Number of Dask workers; 0 without a client.
    worker_bytes : int or None
        Memory per worker.
    looked_at : str
        Numbers of rows that the estimate uses, and of all rows.
    notes : tuple of str

    See Also
    --------
    estimate

    Examples
    --------
    >>> import lodim as ld
    >>> ld.estimate(ld.glm, "mpg ~ weight + model_year", ld.data("autompg")).columns
    2
    """

    model: str
    rows: int
    columns: int
    tile_bytes: int
    scratch: str | None
    free_bytes: int
    memory_bytes: int
    source_passes: int | None
    source_bytes: int | None
    tile_passes: tuple[int, int] | None
    workers: int
    worker_bytes: int | None
    looked_at: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self._report().as_text()

    def _repr_html_(self) -> str:
        return self._report().as_html()

    def _report(self):
        head = [
            ("Rows", f"{self.rows:,}"),
            ("Features", f"{self.columns:,}"),
            ("Size of the features", size_in_bytes(self.tile_bytes)),
            ("Memory", size_in_bytes(self.memory_bytes)),
        ]
        if self.source_passes is not None:
            head.append(("Reads of the data", str(self.source_passes)))
        if self.tile_passes is not None:
            least, most = self.tile_passes
            head.append(("Passes of the fit", f"{least} to {most}"))
        if self.worker_bytes is not None:
            head.append(("Workers", f"{self.workers}"))
            head.append(("Memory of each", size_in_bytes(self.worker_bytes)))
        beside = "Memory is for arrays only; Python and its libraries need about 0.3 GB more."
        files = f"The files take {size_in_bytes(self.source_bytes)}." if self.source_bytes else None
        looked = f"Rows used for this estimate: {self.looked_at}."
        said = (self._where(), beside, files, looked, *self.notes)
        notes = tuple(note for note in said if note)
        return Report(f"Memory and passes of {self.model}()", head, (), notes)

    def _where(self):
        """Return a sentence that says where the features are held, such as in memory."""
        if self.workers:
            return "The workers keep the features and make the passes of the fit."
        where = "memory" if self.scratch is None else f"a scratch file in {self.scratch}"
        free = size_in_bytes(self.free_bytes)
        return f"The fit passes over the features in {where}, which has {free} free."


@with_known_arguments
def estimate(
    model: Model[P, Any], formula: str, data: Data, *args: P.args, **arguments: P.kwargs
) -> Estimate:
    """Predict the memory, disk space and passes of a call before it is made.

    It reads a random sample of rows; the page "Many rows, many columns" says how exact it is.

    Parameters
    ----------
    model : function
        Model function, such as `lodim.gbmap`.
    formula : str
    data : frame, path or other source
    **arguments
        Arguments of the planned call, including `client`.

    Returns
    -------
    Estimate
        Prints as a table.

    Raises
    ------
    FormulaError, DataError, ArgumentError
        If the call itself would raise this error.

    See Also
    --------
    gbmap, glm, costnet

    Examples
    --------
    >>> import lodim as ld
    >>> needed = ld.estimate(ld.glm, "mpg ~ weight + origin", ld.data("autompg"))
    >>> needed.rows, needed.columns, needed.tile_bytes
    (398, 3, 10752)
    """
    given: dict[str, Any] = arguments
    of, client = model_of(model), given.pop("client", None)
    control = dict(given.get("control") or {})
    folder, wanted = control.pop(SCRATCH, None), given.pop("sample", None)
    given["control"] = control or None
    parse(formula)  # errors of a formula are raised before a file is read
    source = read_source(data)
    frame: Any = read_frame(data) if source is None else source
    inputs = [value for name in INPUTS if isinstance(value := given.get(name), str)]
    names = columns_read(formula, frame.names, given.get("family"), inputs)
    n = len(frame.index) if source is None else count_rows(source, names)
    given["sample"] = LOOK if wanted is None else min(LOOK, wanted)
    problem = prepare(of, formula, frame, given)
    design, batch = problem.design, problem.batch
    rows = round((n if wanted is None else min(n, wanted)) * batch.n / len(batch.index))
    p = len(design.names)
    tiles = count(rows) * p * TILE * np.dtype(design.dtype).itemsize
    fits = fits_memory(rows, p, design.dtype)
    in_memory = source is None or fits
    scratch = folder if folder is not None or in_memory else tempfile.gettempdir()
    free = free_memory() if scratch is None else shutil.disk_usage(scratch).free
    needs = of.needs(problem, rows) or UNKNOWN
    beside = _memory(batch, rows, n, needs, source, len(names))
    workers = 0 if client is None else len(client.ncores())
    many = source is not None and rows > ROWS_PER_CHUNK and not (of.streams or fits)
    notes = [f"Working memory of {of.name} itself is not included."] * (needs is UNKNOWN)
    notes += [f"{of.name} needs all rows in memory: give sample= for fewer of them."] * many
    if batch.n < len(batch.index) < n:
        notes.append("The number of complete rows is estimated from the rows that were read.")
    if tiles > free and not workers:
        notes.append("There is too little space for the features.")
    return Estimate(
        model=of.name,
        rows=rows,
        columns=p,
        tile_bytes=tiles,
        scratch=scratch,
        free_bytes=int(min(free, 2**62)),
        memory_bytes=beside + (tiles if scratch is None and not workers else 0),
        source_passes=None if source is None else _source_passes(problem, rows),
        source_bytes=sum(f.size for f in source.files) or None if source is not None else None,
        tile_passes=needs.passes,
        workers=workers,
        worker_bytes=_of_worker(workers, rows, tiles, needs, len(names)) if workers else None,
        looked_at=f"{len(batch.index):,} of {n:,} rows",
        notes=tuple(notes),
    )


def _memory(batch: Batch, rows: int, n: int, needs: Needs, source: Any, n_names: int) -> int:
    """Estimate the peak memory, in bytes, of reading data and fitting, without the matrix X.

    batch : sample of the rows
    rows, n : numbers of complete and of all rows
    needs : Needs, memory of the fit
    source : None for data in memory
    n_names : number of columns read"""
    given = [x for x in (getattr(batch, name) for name in INPUTS) if x is not None]
    held = 16 * rows + sum(8 * rows * (x.size // max(1, batch.n)) for x in given)
    fit = needs.row * rows + needs.fixed
    # While a source is read, memory holds two chunks of each column, and flags per row.
    reading = 8 * n + (2 * ROWS_PER_CHUNK * 8 * n_names if source is not None else 0)
    return int(held + max(fit, reading))


def _source_passes(problem, rows):
    """Return how many times a fit to this number of rows reads data that are not in memory."""
    design = problem.design
    gaps = {fill.name for fill in design.fills if fill.n_missing}
    parts = [part for term in design.terms for part in term]
    filled = any(part.name in gaps for part in parts if isinstance(part, factors.Numeric))
    learnt = any(getattr(part, "states", ()) for part in parts)
    alone = {t[0].name for t in design.terms if len(t) == 1 and isinstance(t[0], factors.Numeric)}
    of_dot = bool(alone - written(parse(design.formula)) or design.compressed)
    examined = of_dot and "compress_tails" in problem.model.learning
    plain = len(alone) == len(design.terms)  # all terms are columns of numbers
    return 2 + learnt + examined + ((filled or not plain) and rows > ROWS_PER_CHUNK)


def _of_worker(n_workers, rows, tile_bytes, needs, n_names):
    """Estimate the bytes that each Dask worker needs, for features, the fit and columns read.

    rows : number of rows
    tile_bytes : size of X
    needs : Needs, memory of the fit
    n_names : number of columns read"""
    chunks = -(-count(rows) * TILE // ROWS_PER_CHUNK // n_workers)
    share = chunks * ROWS_PER_CHUNK if rows > ROWS_PER_CHUNK else rows
    row = tile_bytes / max(1, rows) + 16 + needs.row
    return int(share * row + needs.fixed + ROWS_PER_CHUNK * 8 * n_names)
