"""superarm data: which data sets there are, get them, and make image features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from superarm.cli.options import Force
from superarm.cli.output import check_output, print_table
from superarm.cli.typer_extensions import App

app = App(no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Data sets: list them, get them, make image features.

    Example: **superarm data list**
    """


@app.command("list")
def list_() -> None:
    """The data sets that have a name, and what is here of them.

    Example: **superarm data list**
    """
    from superarm.streams.catalog import FEATURES, feature_file
    from superarm.streams.download import data_home, is_present
    from superarm.streams.images import IMAGE_SETS

    rows = [
        ["synsep", "9", "400", "endless", "embedded"],
        ["synnonsep", "9", "400", "endless", "embedded"],
        ["digits", "10", "64", "1,797", "embedded"],
    ]
    for images in IMAGE_SETS.values():
        n, height, width, channels = images.shape
        is_here = all(is_present(file) for file in images.files)
        size = sum(file.size for file in images.files) / 1e6
        state = "here" if is_here else f"to get, {size:.0f} MB"
        rows.append([images.name, "10", f"{height * width * channels:,}", f"{n:,}", state])
    for name in FEATURES:
        base = name.removesuffix("-vgg16")
        state = "here" if feature_file(name).is_file() else "to make"
        rows.append([name, "10", "512", f"{IMAGE_SETS[base].shape[0]:,}", state])
    print_table("", ["name", "labels", "features", "rows", "where"], rows)
    print(
        f"\nsuperarm data get NAME downloads into {data_home()}; superarm data features NAME makes "
        "NAME-vgg16.\nYour own data: the path of a .csv, .tsv, .jsonl, .parquet, .npz or .svm file."
    )


@app.command("get")
def get(
    names: Annotated[list[str], Argument(help="mnist, fashion-mnist, cifar10, svhn; vgg16 for the weights.")],
    offline: Annotated[
        Path | None, Option("--from", help="A directory that has the files already; no network.")
    ] = None,
    mirror: Annotated[str | None, Option(help="An address to try first.")] = None,
) -> None:
    """Download image sets, check them, and keep them.

    Without a network: put the files into DIR/NAME/ and give **--from DIR**.

    Example: **superarm data get mnist fashion-mnist**
    """
    from superarm.errors import InvalidInput
    from superarm.streams.download import RemoteFile, fetch_files
    from superarm.streams.images import IMAGE_SETS
    from superarm.streams.vgg16 import WEIGHTS

    files_by_name: dict[str, tuple[RemoteFile, ...]] = {
        name: images.files for name, images in IMAGE_SETS.items()
    } | {"vgg16": (WEIGHTS,)}
    for name in names:
        if name not in files_by_name:
            wanted = f"among {', '.join(files_by_name)}"
            raise InvalidInput.must("NAMES", "superarm data get", wanted, name, choices=files_by_name)
    for name in names:
        paths = fetch_files(files_by_name[name], offline=offline, mirror=mirror, progress=True)
        print(f"{name}: {len(paths)} file(s) checked, in {paths[0].parent}")


@app.command("features")
def features(
    images: Annotated[str, Argument(help="An image set's name, or an .npz with images.")],
    weights: Annotated[Path | None, Option(help="A Keras weights file; else ImageNet's is fetched.")] = None,
    size: Annotated[int | None, Option(help="Enlarge images to this height and width.")] = None,
    batch: Annotated[int, Option(help="Images at a time.", min=1)] = 256,
    output: Annotated[Path | None, Option(help="The .npz to write.")] = None,
    force: Force = False,
) -> None:
    """Turn images into VGG-16's 512 features, as the paper does.

    Example: **superarm data features mnist**, then **superarm simulate --data mnist-vgg16**
    """
    from superarm.streams.vgg16 import make_features

    check_output(output, "data features", force=force)
    path, computed = make_features(
        images, weights=weights, size=size, batch=batch, output=output, progress=True
    )
    print(f"{'wrote' if computed else 'already there, from the same images and weights:'} {path}")
