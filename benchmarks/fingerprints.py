"""Fingerprints of seeded fits: equal before and after a change that must change no answer.

    python benchmarks/fingerprints.py [> FILE]

A line for each fit: SHA-256 of what its file holds, of its predictions, and of what it
prints. They belong to one machine and one set of versions, and are compared there.
"""

import hashlib
import tempfile
import warnings
import zipfile
from pathlib import Path

import lodim as ld

FITS = {
    "gbmap numbers": ("gbmap", "mpg ~ .", "autompg", {"m": 6, "lambda_": 0.05}),
    "gbmap chosen": ("gbmap", "disease ~ .", "heart", {"control": {"max_stages": 8}}),
    "gbmap classes": ("gbmap", "species ~ .", "iris", {"m": 3, "lambda_": 0.01}),
    "gbmap spline": ("gbmap", "mpg ~ bs(weight, df=4) * origin", "autompg", {"m": 3, "lambda_": 1}),
    "gbmap lasso": ("gbmap", "y ~ .", "diabetes", {"m": 3, "lambda_": 1, "l1_ratio": 0.5}),
    "proset classes": ("proset", "cultivar ~ .", "wine", {}),
    "proset batches": ("proset", "diagnosis ~ .", "breast_cancer", {"n_batches": 2}),
    "proset density": ("proset", "mpg ~ .", "autompg", {"loss": "density"}),
    "melm two": ("melm", "disease ~ .", "heart", {"gamma": 1.0}),
    "melm chosen": ("melm", "species ~ .", "iris", {}),
    "melm knn": ("melm", "cultivar ~ .", "wine", {"gamma": 1.0, "classifier": "knn"}),
    "melm none": ("melm", "~ .", "iris", {}),
    "ripr classes": ("ripr", "disease ~ .", "heart", {}),
    "ripr numbers": ("ripr", "mpg ~ .", "autompg", {"max_dim": 3}),
    "ripr clusters": ("ripr", "~ sepal_length + petal_length", "iris", {"n_clusters": 3}),
    "ripr several": ("ripr", "mpg + horsepower ~ weight + displacement", "autompg", {}),
    "glm numbers": ("glm", "mpg ~ weight * origin", "autompg", {"covariance": "HC3"}),
    "glm classes": ("glm", "cultivar ~ alcohol + hue", "wine", {}),
    "costnet numbers": ("costnet", "mpg ~ .", "autompg", {}),
    "costnet classes": ("costnet", "species ~ .", "iris", {}),
    "costnet priced": ("costnet", "disease ~ .", "heart", {"lambda_": 0.05}),
}  # fmt: skip


def saved(fit, folder):
    """The contents of its file, which says of no time when it was written."""
    fit.save(Path(folder) / "fit")
    with zipfile.ZipFile(Path(folder) / "fit") as file:
        return b"".join(name.encode() + file.read(name) for name in sorted(file.namelist()))


def fingerprint(content):
    return hashlib.sha256(content).hexdigest()[:16]


def main():
    for name, (model, formula, data, arguments) in FITS.items():
        df = ld.data(data)
        if formula.startswith("y ~"):
            formula = formula.replace("y", df.columns[-1], 1) if "y" not in df else formula
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.ConvergenceWarning)
            one = {} if model == "glm" else {"threads": 1}
            fit = getattr(ld, model)(formula, df, **one, **arguments)
        predictions = fit.predict(df).to_numpy(float).tobytes()
        said = f"{fit}\n{fit.summary()}\n{fit.tidy()}\n{fit.glance()}".encode()
        with tempfile.TemporaryDirectory() as folder:
            made = saved(fit, folder), predictions, said
        print(f"{name:18}", *map(fingerprint, made), flush=True)


if __name__ == "__main__":
    main()
