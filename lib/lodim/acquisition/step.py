"""Step: the next purchase for a row, or the advice to stop."""

from dataclasses import dataclass

import pandas as pd

from lodim.report.tables import Table, listing


@dataclass(frozen=True, repr=False)
class Step:
    """The next purchase for a partly measured row, or the advice to stop.

    Attributes
    ----------
    options : DataFrame
        One row per unknown feature: feature; price; saving (expected fall of the loss from this
        feature alone); buy (the next purchase); together (the best set); unlocks (features whose
        price falls after this purchase).
    prediction : Series
        Probabilities by class; or fit and se, the mean and standard deviation of a number.
    loss : float
        Expected loss if nothing more is bought.
    measure : str
        What the loss is: "log-loss" or "squared error".

    See Also
    --------
    Policy.next

    Examples
    --------
    >>> import lodim as ld
    >>> wine = ld.data("wine")
    >>> step = ld.acquire("cultivar ~ .", wine[::2]).next({"alcohol": 13.0})
    >>> step.buy in wine.columns
    True
    """

    options: pd.DataFrame
    prediction: pd.Series
    loss: float
    measure: str

    @property
    def buy(self) -> str | None:
        """Feature to buy next; None to stop."""
        first = self.options["feature"][self.options["buy"].astype(bool)]
        return None if first.empty else str(first.iloc[0])

    @property
    def price(self) -> float:
        """Price of the next purchase; 0 to stop."""
        return float(self.options["price"][self.options["buy"].astype(bool)].sum())

    def __repr__(self) -> str:
        title = "Stop: no purchase is worth its price"
        if self.buy is not None:
            title = f"Next: {self.buy}, price {self.price:g}"
        more = self.options["feature"][self.options["together"] & ~self.options["buy"]].tolist()
        lines = [f"Then possibly: {', '.join(more)}"] if more else []
        shown = ", ".join(f"{name} {value:.3g}" for name, value in self.prediction.items())
        lines += [f"Prediction: {shown}", f"Expected {self.measure}: {self.loss:.4g}"]
        frame = self.options.set_index("feature").rename_axis(None)[["price", "saving", "unlocks"]]
        frame.columns = ["Price", "Saving alone", "Unlocks"]
        text = listing("", lines, Table("", frame), whole="options").split("\n")
        return "\n".join([title, *text[3:]])
