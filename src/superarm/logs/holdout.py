"""Which rows of a log are kept out of training, and judge."""

from superarm.native.randomness import uniform_number


def is_held_out_row(number: int, holdout: float, seed: int = 0) -> bool:
    """Return whether `train` keeps a row out, and `evaluate` judges by it.

    Args:
        number: the number of the row in its file or table.
        holdout: the share of rows to keep out.
        seed: decides which ones.

    >>> [is_held_out_row(number, 0.5) for number in range(6)]
    [False, True, False, False, False, False]
    """
    # another seed than a learner's: its draws at that round would be the same numbers, and the rows
    # kept out would be those with certain sets
    return bool(uniform_number(seed + 2**41, number, 0) < holdout)
