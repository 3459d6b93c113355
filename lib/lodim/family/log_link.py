"""What families of numbers with a log link share: mean, residual and spread."""

import numpy as np

from lodim.family.family import LARGEST_LOG, RAREST, Family


class LogLink(Family):
    """Methods of families with a log link, whose means are exp(score)."""

    link: str = "log"
    least = 0.0
    support = "counts, 0 or more"

    def mean(self, score):
        return np.exp(np.minimum(score[:, 0], LARGEST_LOG))

    def score(self, mean):
        return np.log(np.maximum(mean, RAREST))[:, None]

    def residual(self, y, score):
        return y - self.mean(score)

    @staticmethod
    def contains(y):
        return y >= 0.0

    def spread(self, mean):
        """Return a multiple of the responses' standard deviation at given means."""
        return np.sqrt(self.variance(mean))

    def most_deviance(self, y):
        """Return the largest deviance of a held-out row that counts.

        It is that of the smallest response where the largest is predicted."""
        least = y[y > 0.0].min(initial=np.inf) if self.dispersed else y.min()
        most = y.max()
        return float(self.deviance(np.array([min(least, most)]), np.log([[most]]))[0]) or np.inf
