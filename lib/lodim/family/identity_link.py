"""What families of numbers with an identity link share: the prediction is the score."""

from lodim.family.family import Family


class IdentityLink(Family):
    """Methods of families whose predictions are the scores (n, 1)."""

    link: str = "identity"

    def mean(self, score):
        return score[:, 0]

    def residual(self, y, score):
        return y - score[:, 0]
