"""Counts: Poisson deviance with a log link."""

from dataclasses import dataclass

from scipy.special import pdtr, xlogy

from lodim.family.power import PowerVariance


@dataclass(frozen=True)
class Poisson(PowerVariance):
    """Family of counts with variance = mean mu; deviance 2 (y log(y / mu) - (y - mu)); log link."""

    name: str = "poisson"
    loss: str = "Poisson deviance"
    power: float = 1.0
    counts = True

    def saturated(self, y):
        return y - xlogy(y, y)

    def distribution(self, y, mean):
        """Return the probability of a count of at most y, given its mean."""
        return pdtr(y, mean)

    def quantile(self, share, mean):
        """Return the smallest count whose distribution function reaches `share`, given its mean."""
        from scipy import stats  # slow to import

        return stats.poisson.ppf(share, mean)

    def deviance(self, y, score):
        mean = self.mean(score)
        return 2.0 * (xlogy(y, y) - y * score[:, 0] - (y - mean))
