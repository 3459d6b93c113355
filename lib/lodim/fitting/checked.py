"""Checked: a fit that says what may be wrong with it."""

from collections.abc import Sequence
from typing import Any

from lodim.design.batch import counted
from lodim.diagnostics.findings import Checks
from lodim.typing import Data, Offset


class Checked:
    """What every fit can be asked about itself and about data."""

    _separates = False  # whether estimates can be infinite
    _separated: Any = ()  # terms whose estimates are
    _cooks_distance: Any = None  # labels and distances of the training rows, where they are known

    def check(
        self,
        data: Data | None = None,
        *,
        offset: Offset | None = None,
        ignore: Sequence[str] = (),
    ) -> Checks:
        """Look for what may be wrong with the fit, with its training rows, or with new ones.

        Parameters
        ----------
        data : frame, optional
            The training rows, or new rows, with the response or without; which they are is seen
            from their number and their means. Without data only what the fit knows is looked at.
        offset : array (n,) or column name, optional
        ignore : tuple of str
            Codes that are not looked at.

        Returns
        -------
        Checks
            An iterable of findings, each with code, severity ("problem" or "note"), sentence, hint,
            terms and rows. Its print says what was found, what was looked at, and why the rest was
            not.

        Raises
        ------
        ArgumentError
            A code is unknown.
        DataError
            A column is missing or of another kind, or no row is complete.

        See Also
        --------
        evaluate, lodim.compare

        Notes
        -----
        Where chance plays a part, what is healthy is found with a probability of 0.001 over all
        features or classes.

        =============  =======================  ============================================
        code           needs                    is found where
        =============  =======================  ============================================
        convergence                             the optimizer stopped before its tolerance
        separation                              (glm) a maximum likelihood estimate is infinite
        dropped-rows                            more than 10 % of the rows miss values, and were
                                                left out
        constant                                a feature did not vary in training
        grid-end                                the least held-out loss is at the smallest penalty
                                                that was tried
        overfit        (new rows with the       more than half of what the fit explains of the
                       response)                training rows is not explained of rows held out (or
                                                new ones), by more than four standard errors
        wild-values    rows                     a feature or a numeric response has values of a few
                                                rows (1%, or 3) that lie farther from all others
                                                than 10 times the range of these; all models but
                                                glm take the middle of the others for them
        leak           rows with the response   one feature has a correlation of .995 with a number
                                                (of values or ranks), an area under the curve of
                                                .995 between all classes; or the levels of one tell
                                                the classes of 99.5 % of the rows
        copies         rows                     two features of different columns have a
                                                correlation of .995 or more
        identifier     the training rows        a column of whole numbers, of which 90 % differ, is
                                                named like an identifier, such as id
        duplicates     the training rows        1 % of the rows repeat an earlier one, features
                                                and response, ten times as many as by chance
        collinearity   the training rows        (glm, costnet) a variance inflation factor of a
                                                number among the numbers is above 10
        rare-level     the training rows        a level or a class has fewer than 5 rows: of five
                                                folds one or more has none
        empty-cells    the training rows        a combination of levels of crossed factors has no
                                                row, or one
        dispersion     the training rows        (glm, poisson) Pearson's statistic over its degrees
                                                of freedom is below 0.5 or above 1.5, by more than
                                                four standard errors
        zeros          the training rows        (glm, poisson) half as many zeros again as the fit
                                                expects, by more than four standard errors
        influence      the training rows        (glm) Cook's distance is above 1; (others) one row
                                                makes 25 % of the deviance
        extrapolation  new rows                 a value is farther from the mean than any of n
                                                training rows can be, sqrt(n - 1) standard
                                                deviations; a level that training had not
        drift          new rows (20)            the mean of a feature has moved by a quarter of a
                                                standard deviation, and by more than chance
        calibration    new rows (40) with the   intercept and slope on the predictions (on their
                       response                 logits) would take away 2 % of the deviance, and
                                                more than chance
        =============  =======================  ============================================

        Examples
        --------
        >>> import lodim as ld
        >>> cars = ld.data("autompg")
        >>> fit = ld.glm("mpg ~ weight + model_year", cars)
        >>> fit.check(cars).codes
        ()
        >>> fit.check(cars[cars["model_year"] > 78]).codes
        ('drift',)
        """
        from lodim.diagnostics.checks import run

        return run(self, data, offset, ignore)

    def _probabilities(self, data, offset):
        """Probabilities (n, K) of the rows of known class and weight above 0; codes; weights."""
        batch = counted(self._reader.apply(data, offset=offset, response=True))
        batch, _ = self._answered(batch)
        return self._predict(batch, "prob")[0], batch.y.astype(int), batch.row_weights
