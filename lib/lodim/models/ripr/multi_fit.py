"""RiprFits: fits of several responses that share their views."""

from typing import Any, Literal, Self

import pandas as pd

from lodim import forms
from lodim.checks import among, one_of
from lodim.design.frame import as_given, in_pandas
from lodim.fitting import storage
from lodim.fitting.streamed import streaming
from lodim.models.ripr.fit import RiprFit
from lodim.models.ripr.report import (
    ERROR,
    compared,
    penalty,
    penalty_label,
    view_features,
)
from lodim.report.numbers import blank_if_missing
from lodim.report.tables import Report, Table, listing, significant
from lodim.typing import Data, FilePath, NewLevels, Prediction


@forms.record
class RiprFits:
    """Fits of several responses, as ripr() returns them.

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
    >>> cars = ld.data("autompg")
    >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
    >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
    >>> sorted(fits.fits)
    ['heavy', 'thirsty']
    """

    name = "ripr"

    fits: dict[str, RiprFit] = forms.entries(forms.part(RiprFit))

    def _check_fields(self):
        """Raise a ValueError unless the fits are of the same views, each under its response."""
        if not self.fits or any(fit.design.response.name != k for k, fit in self.fits.items()):
            raise ValueError("the fits are not under the names of their responses")
        views = [(fit.design.names, fit.view_features) for fit in self.fits.values()]
        if any(each != views[0] for each in views):
            raise ValueError("the responses are not of the same views")

    @property
    def call(self) -> str:
        """The call as a user would write it."""
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

        Raises
        ------
        ArgumentError
            There is no such response.
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
            Of each response, as its fit takes it; "class" gives the mean of a numeric response.
        new_levels : {"error", "missing"}
            What a level that training had not is: refused, or a missing value.

        Returns
        -------
        DataFrame
            A column a response, or a level of columns where a response has several.

        See Also
        --------
        votes, evaluate

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.predict(cars[:2], "class")
           thirsty  heavy
        0     True   True
        1     True   True
        """
        one_of("type", type, dict.fromkeys(k for fit in self.fits.values() for k in fit.types))
        out = {}
        for name, fit in self.fits.items():
            kind = "response" if fit.levels is None and type == "class" else type
            out[name] = in_pandas(fit.predict)(data, kind, new_levels=new_levels)
        return pd.concat(out, axis=1)

    @as_given
    def tidy(self) -> pd.DataFrame:
        """As RiprFit.tidy(), for each response.

        See Also
        --------
        glance

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.tidy().columns.tolist()[:2]
        ['response', 'term']
        """
        frames = [in_pandas(fit.tidy)().assign(response=name) for name, fit in self.fits.items()]
        frame = pd.concat(frames, ignore_index=True)
        return frame[["response", *frame.columns.drop("response")]]

    @as_given
    def glance(self) -> pd.DataFrame:
        """As RiprFit.glance(), a row for each response.

        See Also
        --------
        tidy

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.glance().shape[0]
        2
        """
        return self._by_response([in_pandas(fit.glance)() for fit in self.fits.values()])

    @as_given
    def evaluate(self, data: Data) -> pd.DataFrame:
        """As RiprFit.evaluate(), a row for each response.

        Parameters
        ----------
        data : frame
            With all responses.

        Returns
        -------
        DataFrame

        See Also
        --------
        predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.evaluate(cars).shape[0]
        2
        """
        return self._by_response([in_pandas(fit.evaluate)(data) for fit in self.fits.values()])

    def _by_response(self, frames):
        """Frames of one row below each other, named by their responses."""
        frame = pd.concat(frames, ignore_index=True)
        frame.insert(0, "response", list(self.fits))
        return frame

    @as_given
    @streaming
    def augment(self, data: Data, *, output: FilePath | None = None) -> pd.DataFrame:
        """As RiprFit.augment(); what each fit adds is named by its response: ".fitted[alert]".

        Parameters
        ----------
        data : frame

        Returns
        -------
        DataFrame

        See Also
        --------
        predict

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.augment(cars[:2]).columns[-2:].tolist()
        ['.class[heavy]', '.view[heavy]']
        """
        columns = list(data.columns) if isinstance(data, pd.DataFrame) else []
        parts = [
            in_pandas(fit.augment)(data)
            .drop(columns=columns, errors="ignore")
            .add_suffix(f"[{name}]")
            for name, fit in self.fits.items()
        ]
        new = pd.concat(parts, axis=1)
        if not isinstance(data, pd.DataFrame):
            return new
        return pd.concat([data.drop(columns=new.columns, errors="ignore"), new], axis=1)

    def update(self, data: Data, **changes: Any) -> Self:
        """Fit the same model to `data`, with some arguments of the call (or `formula`) changed.

        Parameters
        ----------
        data : frame
        **changes
            Arguments of `lodim.ripr`, as for RiprFit.update().

        Returns
        -------
        RiprFits

        Raises
        ------
        ArgumentError
            An argument of the call was not kept, or is refused by `lodim.ripr`.

        See Also
        --------
        lodim.ripr

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> fits.update(cars, k=20).fits['heavy'].settings.k
        20
        """
        return self._first.update(data, **changes)

    def summary(self, *, full: bool = False) -> Report:
        """Return the printed report: the shared views, and each response; see `Fit.summary`.

        Parameters
        ----------
        full : bool
            Whether long tables are whole.

        Returns
        -------
        Report

        See Also
        --------
        tidy, glance

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
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
            (penalty_label(self._tasks), penalty(first)),
            ("Views compared", compared(first)),
        )
        tables = (Table("Responses", each, formats), self._views("Views"))
        return Report("Informative Projection Results", header, tables, self._notes(), full=full)

    @property
    def _tasks(self):
        return {fit.estimates.task for fit in self.fits.values()}

    @property
    def _judged_rows(self):
        """Which rows the errors are of."""
        fitted = self._first.estimates.local_learners
        return "of the rows that the learner was fitted to" if fitted else "leave-one-out"

    def _notes(self):
        notes = [
            "Responses share the views: one loss matrix for each, and the mass of a view is that "
            "over all of them.",
            f"Errors: {self._judged_rows}, in views chosen on these rows: new ones may do worse.",
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
            The file cannot be written, or the fits hold what no file can.

        See Also
        --------
        lodim.load

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> cars = cars.assign(thirsty=cars["mpg"] < 20, heavy=cars["weight"] > 3000)
        >>> fits = ld.ripr("thirsty + heavy ~ displacement + acceleration", cars, max_dim=2, k=10)
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     fits.save(Path(folder) / "cars.lodim")
        ...     back = ld.load(Path(folder) / "cars.lodim")
        >>> sorted(back.fits)
        ['heavy', 'thirsty']
        """
        storage.write(path, "ripr_fits", forms.write(self))

    def _views(self, title, notes=()):
        """Return the views, with share of the rows and error of each response."""
        table = view_features(self._first)
        formats: dict[Any, Any] = {}
        for name, fit in self.fits.items():
            frame = in_pandas(fit.tidy)()
            error = f"{ERROR[fit.estimates.task][0]} {name}"
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
            f"{penalty(first)}",
        ]
        note = f"Errors: {self._judged_rows}, in views chosen on these rows."
        return listing(self.call, lines, self._views("", (note,)))

    def _repr_html_(self):
        return self.summary().as_html()
