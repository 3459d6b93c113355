"""Rows that the workers of a Dask cluster read: passes over their parts, and their tiles."""

from dataclasses import dataclass, replace

from lodim.design import parts
from lodim.design.streamed import PartReader, SourceParts, part_task
from lodim.engine import workers
from lodim.errors import ArgumentError


def client_for(client, source, sample, scratch):
    """The client whose workers read a source, or None where it is read here.

    A Dask frame goes to the client of this process, if there is one.
    """
    if client is None:
        return workers.own_client() if source is not None and source.kind == "dask" else None
    if source is None:
        raise ArgumentError(
            "client= is for files or a Dask frame, which its workers read; data in memory are "
            "fitted here: leave client out"
        )
    if sample is not None:
        raise ArgumentError("sample= draws rows that are fitted here: leave client out, or sample")
    if scratch is not None:
        raise ArgumentError(
            'control={"scratch": ...} is for features that are held here, and those of client= are '
            "held by its workers: leave one of the two out"
        )
    return workers.checked_client(client)


@dataclass(frozen=True, eq=False)
class WorkerParts(SourceParts):
    """Parts of which the workers of a client work on one each."""

    client: object = None

    @classmethod
    def of_client(cls, read, client):
        """The parts of a source on the workers of a client; as they are where they are few."""
        if client is None or read.n <= parts.PART:
            return read
        return cls(read.places, read.table, read.n_rows, read.known, client)

    def map(self, work, names):
        """A list of work(span, table of a part) of the parts in order, in one pass."""
        if not names:
            return super().map(work, names)
        spans = parts.spans(self.table.rows, self.n)
        each = [(span, self._bare(span), work, list(names)) for span in spans]
        return workers.run_tasks(self.client, _of_part, self.places, each)

    def tiles(self, design, inputs, weights, offset):
        """Tiles of all rows on the workers, and the RowInputs whose parts are there too."""
        make = PartReader.from_parts(design, self, weights, offset)
        X = workers.read_parts(self.client, make, self.n, len(design.names), design.dtype)
        here = {name: values for name, (values, _) in X.beside.items()}
        kept = {k: here[k] for k in ("weights", "offset") if getattr(inputs, k) is not None}
        return X, here.get("y"), replace(inputs, **kept)


def _of_part(places, span, table, work, names):
    return part_task(span, places, table, work, names)
