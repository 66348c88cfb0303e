"""MNIST from one random set and one bit per image: what `superarm train` makes of it.

    python benchmarks/one_bit_an_image.py mnist.npz --set-size 4 --passes 1,10

For every training image one uniform set of labels is drawn, once, and it is noted whether the right one is
among them; 60,000 bits are all there is to learn from, however often they are gone through. The log and its
features are files, and they are trained on as by ``superarm train log.parquet --features pixels.npy``, linear
(``set-logit:curves=0``) and curved (``set-logit``). Errors are those of the best label on the test images.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from superarm.learners.registry import make
from superarm.logs import Log, summarize, train


def write(folder: Path, images: np.ndarray, y: np.ndarray, m: int, seed: int) -> tuple[Path, Path]:
    """The log and its features, as somebody else would have them."""
    random = np.random.default_rng(seed)
    sets = np.array([random.permutation(10)[:m] for _ in y])
    hit = (sets == y[:, None]).any(axis=1)
    log, pixels = folder / "log.parquet", folder / "pixels.npy"
    pl.DataFrame({"labels": sets.tolist(), "hit": hit}).write_parquet(log)
    np.save(pixels, images)
    return log, pixels


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mnist", type=Path)
    parser.add_argument("--set-size", type=int, default=4)
    parser.add_argument("--passes", default="1,10")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with np.load(arguments.mnist) as file:
        flat = [
            file[name].reshape(len(file[name]), -1).astype(np.float32) / 255 for name in ("x_train", "x_test")
        ]
        y, truth = file["y_train"].astype(np.int64), file["y_test"]
    with tempfile.TemporaryDirectory() as folder:
        path, pixels = write(Path(folder), flat[0], y, arguments.set_size, arguments.seed)
        log = Log(path, matrix=pixels, uniform=True)
        summary = summarize(log, labels=10)
        for spec in ("set-logit:curves=0", "set-logit"):
            for passes in map(int, arguments.passes.split(",")):
                learner = make(spec, **summary.learner_params, seed=arguments.seed)
                result = train(log, learner, summary, passes=passes, holdout=0.0, seed=arguments.seed)
                error = float((learner.predict(flat[1]) != truth).mean())
                tried = "".join(
                    f", log loss {loss:.4f} after {number}" for number, loss in result.losses_by_passes
                )
                passes_kept = f"{passes:2} passes asked, {result.passes:2} kept"
                print(
                    f"{spec:18} m = {arguments.set_size}, {passes_kept}: test error {error:.2%}{tried}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
