"""Where rows and labels come from: arrays, files, frames, and data sets by name."""

from superarm.streams.arrays import Arrays
from superarm.streams.catalog import NAMES, open_data
from superarm.streams.data_files import from_frame
from superarm.streams.stream import Chunk, Stream, size_of
from superarm.streams.synthetic import Synthetic, synnonsep, synsep

__all__ = [
    "NAMES",
    "Arrays",
    "Chunk",
    "Stream",
    "Synthetic",
    "from_frame",
    "open_data",
    "size_of",
    "synnonsep",
    "synsep",
]
