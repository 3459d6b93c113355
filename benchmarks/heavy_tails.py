"""Default gbmap with and without compressed heavy tails of its columns, on held-out halves.

    python benchmarks/heavy_tails.py FOLDER [--sets wine_red,...] [--seeds 3] [--rows 1500]

FOLDER has CSV files, as for `held_out.py`, which also describes the splits. gbmap compresses heavy
tails of the columns of a dot, and not those of columns that the formula names. A row per set and
seed in which a column is compressed: number of these columns; accuracy or R2, and log-loss, of both
formulas.
"""

import argparse
import warnings

from held_out import halves, of_lodim, sets, table

import lodim as ld
from lodim.formula.formula import quote

FIELDS = ("set", "n", "seed", "columns", "score", "compressed", "log_loss", "compressed_log_loss")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1500)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    write = table(None, FIELDS)
    for name, df in sets(args.folder).items():
        for seed in range(args.seeds) if not args.sets or name in args.sets.split(",") else ():
            train, test = halves(df, seed, args.rows)
            named = "y ~ " + " + ".join(map(quote, train.columns.drop("y")))
            dot, raw = (ld.gbmap(f, train, m=1, lambda_=1.0).design for f in ("y ~ .", named))
            count = len(set(dot.term_names) - set(raw.term_names))
            if count:
                one, two = of_lodim("gbmap", train, test, named), of_lodim("gbmap", train, test)
                values = name, len(train), seed, count, one[0], two[0], one[1], two[1]
                write(
                    {
                        k: f"{v:.4f}" if isinstance(v, float) else v
                        for k, v in zip(FIELDS, values, strict=True)
                    }
                )


if __name__ == "__main__":
    main()
