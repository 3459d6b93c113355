"""All rows of a source, as pandas would read them."""

import pandas as pd


def read_all(source):
    """All rows of a source as one DataFrame."""
    frames = [chunk.frame for chunk in source.chunks(source.names)]
    return pd.concat(frames, ignore_index=True)
