"""A gbmap as expressions: Eq. 1, learner by learner."""

from lodim.export.expression import call, weighted
from lodim.models.gbmap.kernels.cpu import SOFTPLUS


def scores(learners, features, offset):
    """Link scores of standardized features, a list of K nodes."""
    bias, parts = [0.0] * learners.n_scores, [([1.0], [offset]) for _ in range(learners.n_scores)]
    for j, theta in enumerate(learners.theta):
        name, size = f"projection {j + 1}", learners.scale * learners.sign[j]
        if learners.activation == SOFTPLUS:
            z = weighted(learners.beta * theta[1], learners.beta * theta[2:], features, name)
            learner = call("softplus", z)
            size = size / learners.beta
        else:
            learner = weighted(theta[1], theta[2:], features, name)
        k = learners.target[j]
        bias[k] += learners.scale * theta[0]
        parts[k][0].append(size)
        parts[k][1].append(learner)
    return [weighted(b, *part, "score") for b, part in zip(bias, parts, strict=True)]
