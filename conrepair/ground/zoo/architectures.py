"""The architectures of torchvision and Keras, and what inputs they take; found by trying each.

The lists are written down so that a configuration means the same everywhere, and is checked without importing
a framework. A test compares them with the installed libraries.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.words import meant


@dataclass(frozen=True)
class Architecture:
    """One architecture.

    Attributes:
        family: "torchvision" or "keras".
        name: As the library calls it.
        least: Least height and width.
        multiple: What height and width must be a multiple of.
        kwargs: Arguments of its factory that don't depend on the size.
        size_argument: Its argument for the size, and whether that takes one number or a pair.
        pixels: Whether it takes pixels 0..255 and scales them itself.
    """

    family: str
    name: str
    least: int = 32
    multiple: int = 1
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    size_argument: str = ""
    pixels: bool = False

    @property
    def factory(self) -> str:
        """Dotted, as a configuration has it."""
        module = "torchvision.models" if self.family == "torchvision" else "keras.applications"
        return f"{module}:{self.name}"

    def size(self, wanted: int) -> int:
        """The smallest size that it takes and that isn't below `wanted`."""
        return -(-max(wanted, self.least) // self.multiple) * self.multiple

    def arguments(self, size: int) -> dict[str, Any]:
        """The factory's keyword arguments for an input of that height and width."""
        if self.family == "keras":
            return {"weights": None, "input_shape": [size, size, 3], **self.kwargs}
        sized = {"image_size": size, "input_size": [size, size]}
        return {"weights": None, **self.kwargs} | (
            {self.size_argument: sized[self.size_argument]} if self.size_argument else {}
        )


_TORCHVISION = """
alexnet convnext_base convnext_large convnext_small convnext_tiny densenet121 densenet161 densenet169 densenet201
efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5 efficientnet_b6
efficientnet_b7 efficientnet_v2_l efficientnet_v2_m efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5
mnasnet0_75 mnasnet1_0 mnasnet1_3 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_16gf regnet_x_1_6gf
regnet_x_32gf regnet_x_3_2gf regnet_x_400mf regnet_x_800mf regnet_x_8gf regnet_y_128gf regnet_y_16gf regnet_y_1_6gf
regnet_y_32gf regnet_y_3_2gf regnet_y_400mf regnet_y_800mf regnet_y_8gf resnet101 resnet152 resnet18 resnet34 resnet50
resnext101_32x8d resnext101_64x4d resnext50_32x4d shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5
shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_b swin_s swin_t swin_v2_b swin_v2_s swin_v2_t vgg11 vgg11_bn vgg13
vgg13_bn vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_h_14 vit_l_16 vit_l_32 wide_resnet101_2 wide_resnet50_2
"""

_KERAS = """
ConvNeXtBase ConvNeXtLarge ConvNeXtSmall ConvNeXtTiny ConvNeXtXLarge DenseNet121 DenseNet169 DenseNet201
EfficientNetB0 EfficientNetB1 EfficientNetB2 EfficientNetB3 EfficientNetB4 EfficientNetB5 EfficientNetB6
EfficientNetB7 EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2L EfficientNetV2M
EfficientNetV2S InceptionResNetV2 InceptionV3 MobileNet MobileNetV2 MobileNetV3Large MobileNetV3Small NASNetLarge
NASNetMobile ResNet101 ResNet101V2 ResNet152 ResNet152V2 ResNet50 ResNet50V2 VGG16 VGG19 Xception
"""

# Auxiliary outputs need larger inputs, and play no part in answers; the initialization of these two takes minutes.
_PLAIN_INCEPTION = {"kwargs": {"aux_logits": False, "init_weights": False}}
# The longest matching beginning decides.
_SPECIAL: dict[str, dict[str, dict[str, Any]]] = {
    "torchvision": {
        # Their adaptive pooling to 6 x 6 and 7 x 7 is only convertible where it divides the input.
        "alexnet": {"least": 224, "multiple": 224},
        "vgg": {"least": 224, "multiple": 224},
        "googlenet": _PLAIN_INCEPTION,
        "inception_v3": {"least": 75} | _PLAIN_INCEPTION,
        # Windows of 7 x 7 after 32-fold reduction.
        "maxvit": {"least": 224, "multiple": 224, "size_argument": "input_size"},
        # A multiple of the patch.
        "vit_b_16": {"multiple": 16, "size_argument": "image_size"},
        "vit_b_32": {"multiple": 32, "size_argument": "image_size"},
        "vit_h_14": {"multiple": 14, "size_argument": "image_size"},
        "vit_l_16": {"multiple": 16, "size_argument": "image_size"},
        "vit_l_32": {"multiple": 32, "size_argument": "image_size"},
    },
    "keras": {
        "Inception": {"least": 75},
        "Xception": {"least": 71},
        "ConvNeXt": {"pixels": True},
        "EfficientNet": {"pixels": True},
        "MobileNetV3": {"pixels": True},
    },
}


def _architecture(family: str, name: str) -> Architecture:
    beginnings = [beginning for beginning in _SPECIAL[family] if name.startswith(beginning)]
    special = _SPECIAL[family][max(beginnings, key=len)] if beginnings else {}
    return Architecture(family, name, **special)


FAMILIES: dict[str, tuple[Architecture, ...]] = {
    "torchvision": tuple(_architecture("torchvision", name) for name in _TORCHVISION.split()),
    "keras": tuple(_architecture("keras", name) for name in _KERAS.split()),
}


def select(family: str, names: Sequence[str], exclude: Sequence[str] = ()) -> list[Architecture]:
    """The architectures of a family that names or patterns select.

    Args:
        family: One of `FAMILIES`.
        names: Names, or patterns with * and ?.
        exclude: The same; these are left out.

    Returns:
        In the order of `names`, each once.

    Raises:
        ConfigError: if a name or pattern selects nothing.
    """
    out = {item.name for pattern in exclude for item in _matching(family, pattern)}
    found = {item.name: item for pattern in names for item in _matching(family, pattern) if item.name not in out}
    return list(found.values())


def _matching(family: str, pattern: str) -> list[Architecture]:
    found = [item for item in FAMILIES[family] if fnmatch.fnmatchcase(item.name, pattern)]
    if not found:
        names = [item.name for item in FAMILIES[family]]
        hint = meant(pattern, names, "`conrepair architectures --list` shows what there is.")
        raise ConfigError(f"{family} has no architecture '{pattern}'{hint}")
    return found
