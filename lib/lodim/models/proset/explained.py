"""What a ProsetFit can say of itself and of single rows (Ruf 2022, chapter 4)."""

from os import PathLike
from typing import Any

import pandas as pd

from lodim.fitting.fit import Fit


class Explained(Fit):
    """The explanations of a ProsetFit."""

    def export(self, data: Any = None) -> pd.DataFrame:
        """All prototypes: the basic report of Ruf (2022), Section 4.3.1.

        Parameters
        ----------
        data : DataFrame, optional
            The data that the fit was made of, whose other columns are then shown too: a fit keeps
            the active features alone.

        Returns
        -------
        DataFrame
            A row a prototype, by batch and falling weight: batch, row (label in the training data),
            members (rows that were the same in target and active features), target,
            prototype_weight, then the active features in original units, those with the largest
            feature weight first. Levels have columns of 0 and 1.

        Raises
        ------
        DataError
            `data` are other data.
        """
        from lodim.models.proset.explain.exported import export

        return export(self, data)

    def explain(
        self, data: Any, *, features: Any = None, least: float = 1e-3, offset: Any = None
    ) -> Any:
        """Take the estimate of one row apart, prototype by prototype (Section 4.3.1, Figure 4.5).

        Parameters
        ----------
        data : frame of one row, Series, or dict of values
        features : int or list of names, optional
            Active features to show beside each other: that many, the most important first, or those
            named; all by default.
        least : float
            Prototypes that make up less than this share of the estimate are summed up in one row,
            unless they are in the dominant set.
        offset : array (1,) or column name, optional

        Returns
        -------
        Explanation
            It prints, shows as HTML in notebooks, writes Excel (`to_excel`), and has `.frame`. What
            its rows add, all together, is the prediction.

        Raises
        ------
        ArgumentError
            More rows than one, or a feature that is not active.
        DataError
            The row misses a value.
        """
        from lodim.models.proset.explain.breakdown import explain

        return explain(self, data, features=features, least=least, offset=offset)

    def familiarity(self, data: Any, *, quantile: bool = False, held_out: Any = None) -> pd.Series:
        """Familiarity sum_j w_j G_j(x) of each row, Eq. 4.5.

        Parameters
        ----------
        data : frame
        quantile : bool
            Whether to give the share of known rows that are no more familiar instead: 0.01 says
            that one in a hundred is as strange.
        held_out : frame, optional
            The known rows; by default the training rows, each without the prototype that it is.

        Returns
        -------
        Series, with the rows of `data`; NaN where an input is missing
        """
        from lodim.models.proset.explain.familiar import familiarity

        return familiarity(self, data, quantile, held_out)

    def shrink(self) -> "Explained":
        """The same fit, which needs only the columns of its active features.

        Predictions are the same to the bit; rows that miss what plays no part have them now. Terms
        of the formula without an active feature are dropped, the others stay whole. A fit without
        such terms is returned as it is.
        """
        from lodim.models.proset.shrunk import shrink

        return shrink(self)

    def reference(self, data: Any = None) -> pd.DataFrame:
        """A typical row, to compare others with: Algorithm 4.2.

        The row with the best ranks of mean absolute distance to all others, among standardized
        active features and among estimates together. It is a row that exists, extreme in neither.

        Parameters
        ----------
        data : frame, optional
            Rows to choose from; by default the training data, of which the fit keeps the choice
            (of 20,000 rows drawn at random, where there are more).

        Returns
        -------
        DataFrame
            One row: its label, and the active features in original units.
        """
        from lodim.models.proset.explain.attribution import reference

        return reference(self, data)

    def shapley(
        self,
        data: Any,
        *,
        reference: Any = None,
        n_permutations: int | None = None,
        seed: int = 0,
        offset: Any = None,
    ) -> pd.DataFrame:
        """Shapley values of the terms: how each moves the prediction from the reference's.

        Values of a coalition are the predictions with its terms at the row and the others at the
        reference (Section 4.3.2). All columns of a term (levels, a spline) move together.

        Parameters
        ----------
        data : frame
        reference : frame of one row, optional
            As `data`, or as `reference()` gives it; `reference()` by default.
        n_permutations : int, optional
            Random orders of terms, each taken with its reverse. By default all coalitions are
            enumerated where at most 12 terms differ from the reference, and 200 orders drawn else.
        seed : int
            Of the orders.
        offset : array (n,) or column name, optional
            Of the predictions, the reference's too.

        Returns
        -------
        DataFrame
            For each row of `data` (and class, if there are more than two): the prediction at the
            reference, as term "(reference)", and a row a term with active features. What they add
            up to is the prediction, `predict(data)`. std_error is zero where all coalitions were
            enumerated. NaN where the row misses an input.
        """
        from lodim.models.proset.explain.attribution import shapley_values

        return shapley_values(self, data, reference, n_permutations, seed, offset)

    def plot(self, kind: str | None = None, ax: Any = None, **arguments: Any) -> Any:
        """Draw on matplotlib Axes and return them.

        kind : "weights" (top=20), feature weights by batch (default); "map" (data=None, row=None,
        batch=1, named=0), prototypes of a batch by weighted PCA, Eqs. 4.1-4.4, with the rows of
        `data`, and with `row`, a frame of one row, prototypes sized by their impact on it;
        "scatter" (features=None, data=None, row=None), two active features; "surface"
        (features=None, reference=None, level=None), estimates over two features with the others at
        the reference; "shapley" (data, row=0, reference=None, level=None, top=15), Shapley values
        of one row of `data`, by position.
        """
        from lodim.models.proset import plots

        return plots.draw(self, kind, ax, **arguments)

    def to_excel(self, path: str | PathLike, row: Any = None, **arguments: Any) -> None:
        """Write a formatted workbook: `export()`, or with `row` its explanation (Figure 4.5).

        Parameters
        ----------
        path : path
            Of the .xlsx file.
        row : frame of one row, Series, or dict of values, optional
        **arguments
            Of `explain`, or `data` of `export`.

        Raises
        ------
        MissingExtraError
            openpyxl is not installed.
        """
        from lodim.models.proset.explain import workbook

        if row is not None:
            self.explain(row, **arguments).to_excel(path)
        else:
            workbook.of_prototypes(self, self.export(**arguments), path)
