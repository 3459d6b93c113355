"""RiprFits: fits of several responses that share their views (feature sets)."""

from typing import Any, Literal, Self

import pandas as pd

from lodim import forms
from lodim.checks import among
from lodim.design.frame import PANDAS, as_given, in_pandas, with_columns
from lodim.fitting import storage
from lodim.fitting.streamed import streaming
from lodim.models.ripr import report
from lodim.models.ripr.fit import RiprFit
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Report, Summarized, Table, listing, significant
from lodim.typing import Data, FilePath, NewLevels, Prediction


@forms.record
class RiprFits(Summarized):
    """Fits of several responses with shared views (feature sets), as ripr() returns them.

    Attributes
    ----------
    fits : dict of str to RiprFit
        The fit of each response; all have the same views, in the same order.

    See Also
    --------
    ripr, RiprFit

    Examples
    --------
    >>> import lodim as ld
    >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", ld.data("autompg"), k=10)
    >>> sorted(fits.fits)
    ['mpg', 'weight']
    """

    name = "ripr"

    fits: dict[str, RiprFit] = forms.entries(forms.part(RiprFit))

    def _check_fields(self):
        if not self.fits or any(fit.design.response.name != k for k, fit in self.fits.items()):
            raise ValueError("the fits are not under the names of their responses")
        views = [(fit.design.names, fit.view_features) for fit in self.fits.values()]
        if any(each != views[0] for each in views):
            raise ValueError("the responses are not of the same views")

    @property
    def call(self) -> str:
        """The call, as a user would write it."""
        return self._first.call

    @property
    def _frame_kind(self):
        return self._first._frame_kind

    @property
    def _first(self):
        return next(iter(self.fits.values()))

    def __getitem__(self, response: str) -> RiprFit:
        """Return the fit of one response.

        Parameters
        ----------
        response : str
            Name of the response; an ArgumentError if there is no such response.
        """
        return list(self.fits.values())[among("response", response, list(self.fits))]

    @as_given
    @streaming
    def predict(
        self,
        data: Data,
        type: Prediction | Literal["view", "cluster"] = "response",
        *,
        new_levels: NewLevels = "error",
        output: FilePath | None = None,
    ) -> pd.DataFrame:
        """Predict all responses, side by side, for the rows of `data`.

        Parameters
        ----------
        data : frame
        type : str
            "response": numbers or class probabilities. "link": linear predictors. "class": the most
            probable class, and numbers as they are. "prob": one column per class, if all responses
            have classes. "view": the view (feature set) that predicts the row.
        new_levels : {"error", "missing"}
            Levels that did not occur in training: an error, or a missing value.

        Returns
        -------
        DataFrame
            One column per response, or a group of columns if a response has several.

        See Also
        --------
        evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", cars, k=10)
        >>> fits.predict(cars[:2]).columns.tolist()
        ['mpg', 'weight']
        """
        out = {}
        for name, fit in self.fits.items():
            kind = "response" if fit.levels is None and type == "class" else type
            out[name] = in_pandas(fit.predict)(data, kind, new_levels=new_levels)
        return pd.concat(out, axis=1)

    @as_given
    def tidy(self) -> pd.DataFrame:
        """Return one row per response and view (feature set): shares, error, number of features.

        See Also
        --------
        glance

        Examples
        --------
        >>> import lodim as ld
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", ld.data("autompg"), k=10)
        >>> fits.tidy().columns.tolist()[:2]
        ['response', 'term']
        """
        frames = [in_pandas(fit.tidy)().assign(response=name) for name, fit in self.fits.items()]
        frame = pd.concat(frames, ignore_index=True)
        return frame[["response", *frame.columns.drop("response")]]

    @as_given
    def glance(self) -> pd.DataFrame:
        """Return one row per response: sizes, number of views, deviances, error, convergence.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", ld.data("autompg"), k=10)
        >>> fits.glance().shape[0]
        2
        """
        return self._by_response([in_pandas(fit.glance)() for fit in self.fits.values()])

    @as_given
    def evaluate(self, data: Data, *, new_levels: NewLevels = "error") -> pd.DataFrame:
        """Return one row per response with errors of the predictions for the rows of `data`.

        Parameters
        ----------
        data : frame
            With all responses.
        new_levels : {"error", "missing"}, default="error"
            As in `predict`.

        See Also
        --------
        predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", cars, k=10)
        >>> fits.evaluate(cars).shape[0]
        2
        """
        evaluate = (in_pandas(fit.evaluate) for fit in self.fits.values())
        return self._by_response([of_fit(data, new_levels=new_levels) for of_fit in evaluate])

    def _by_response(self, frames):
        frame = pd.concat(frames, ignore_index=True)
        frame.insert(0, "response", list(self.fits))
        return frame

    @as_given
    @streaming
    def augment(
        self, data: Data, *, new_levels: NewLevels = "error", output: FilePath | None = None
    ) -> pd.DataFrame:
        """Return `data` with predictions, residuals and views of all responses as further columns.

        Parameters
        ----------
        data : frame
        new_levels : {"error", "missing"}, default="error"
            Levels that did not occur in training: an error, or a missing value.

        Returns
        -------
        DataFrame
            The new columns are called .fitted[mpg], .view[mpg] and so on, for a response mpg.

        See Also
        --------
        predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", cars, k=10)
        >>> fits.augment(cars[:2]).columns[-1]
        '.view[weight]'
        """
        parts = [
            fit._new_columns(data, None, new_levels).add_suffix(f"[{name}]")
            for name, fit in self.fits.items()
        ]
        new = pd.concat(parts, axis=1)
        return with_columns(data, new, PANDAS) if isinstance(data, pd.DataFrame) else new

    def update(self, data: Data, **changes: Any) -> Self:
        """Fit the same model to `data`, with some arguments of the call (or `formula`) changed.

        Parameters
        ----------
        data : frame
        **changes
            Arguments of `lodim.ripr`. Arrays of the call must be given again (else an
            ArgumentError), since a fit does not keep them.

        Returns
        -------
        RiprFits

        See Also
        --------
        lodim.ripr

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", cars, k=10)
        >>> fits.update(cars, k=20).fits["mpg"].settings.k
        20
        """
        return self._first.update(data, **changes)

    def summary(self, *, full: bool = False) -> Report:
        """Return a printed report of the shared views (feature sets) and of each response.

        Parameters
        ----------
        full : bool
            Show all rows of every table.

        See Also
        --------
        tidy, glance

        Examples
        --------
        >>> import lodim as ld
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", ld.data("autompg"), k=10)
        >>> print(fits.summary().as_text().splitlines()[0].strip())
        Informative Projection Results
        """
        glance = in_pandas(self.glance)().set_index("response").rename_axis(None)
        each = glance[["family", "n", "n_unlabelled", "error", "dev_ratio"]].set_axis(
            ["Family", "Rows", "Unlabelled", "Error or MSE", "Dev. ratio"], axis=1
        )
        formats: dict[Any, Any] = {"Error or MSE": significant, "Dev. ratio": significant}
        first = self._first
        header = (
            ("Responses", str(len(self.fits))),
            ("Views", str(len(first.estimates))),
            ("Neighbours (k)", str(first.settings.k)),
            (report.penalty_label(self._tasks), report.penalty(first)),
            ("Views compared", report.compared(first)),
        )
        tables = (Table("Responses", each, formats), self._views("Views"))
        return Report("Informative Projection Results", header, tables, self._notes(), full=full)

    @property
    def _tasks(self):
        return {fit.estimates.task for fit in self.fits.values()}

    def _notes(self):
        notes = [
            "Responses share the views; the weight of a view is over all responses.",
            "Errors: leave-one-out, in views chosen on these rows; new rows may have larger ones.",
        ]
        if len(self._tasks) > 1:
            notes.append(
                "Lambda is in units of (1 - alpha)^2 for the losses of classes, and of their "
                "mean variance in a row for those of numbers."
            )
        return tuple(notes)

    def save(self, path: FilePath) -> None:
        """Write the fits to one file; `lodim.load` reads it.

        Parameters
        ----------
        path : path

        Raises
        ------
        StoreError
            If the file cannot be written, or the fits contain objects that cannot be saved.

        See Also
        --------
        lodim.load

        Examples
        --------
        >>> import lodim as ld
        >>> fits = ld.ripr("mpg + weight ~ displacement + acceleration", ld.data("autompg"), k=10)
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     fits.save(folder + "/cars.lodim")
        """
        storage.write(path, "ripr_fits", forms.write(self))

    def _views(self, title, notes=()):
        """Return a Table of the feature sets, with share of rows and error for each response."""
        table = report.view_features(self._first)
        formats: dict[Any, Any] = {}
        for name, fit in self.fits.items():
            frame = in_pandas(fit.tidy)()
            error = f"{report.ERROR[fit.estimates.task][0]} {name}"
            table[f"%Rows {name}"] = 100.0 * frame["estimate"].to_numpy()
            table[error] = frame["error"].to_numpy()
            formats |= {f"%Rows {name}": ".1f", error: blank_if_missing}
        return Table(title, table, formats, notes)

    def __repr__(self):
        first = self._first
        lines = [
            f"Responses: {', '.join(self.fits)}",
            f"Rows: {first.n}, features: {len(first.design.names)}, used: {first.df}",
            f"Views: {len(first.estimates)}, shared; k: {first.settings.k}, lambda: "
            f"{report.penalty(first)}",
        ]
        note = "Errors: leave-one-out, in views chosen on these rows."
        return listing(self.call, lines, self._views("", (note,)))
