"""Design.restrict as a function, for callers that are not moved yet."""


def restrict(design, features):
    """See `Design.restrict`."""
    return design.restrict(features)
