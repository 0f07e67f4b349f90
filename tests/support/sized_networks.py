"""One network exported for pictures of different sizes: a softmax over places has their number written into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.models.model import Model
from tests.support.made_once import made_once
from tests.support.small_models import model_of

FORMATS = ("onnx", "torch", "keras", "tflite", "tensorflow")


@made_once
def exported(framework: str, size: tuple[int, int], folder: Path, *, batch: int | None = 1) -> Model:
    """For pictures of a size; in PyTorch and ONNX, for a batch too, or for any (None)."""
    if framework in {"onnx", "torch"}:
        return _of_torch(framework, size, folder, batch)
    return _of_keras(framework, size, folder)


def _of_torch(framework: str, size: tuple[int, int], folder: Path, batch: int | None) -> Model:
    import torch
    from torch import nn

    class Places(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv2d(3, 6, 3, padding=1, stride=2)
            self.norm = nn.BatchNorm2d(6)
            self.last = nn.Linear(6, 4)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            found = torch.relu(self.norm(self.first(image)))
            count, channels, height, width = found.shape
            seen = found.reshape(count, channels, height * width).transpose(1, 2).softmax(1)
            weighed = seen.transpose(1, 2).reshape(count, channels, height, width)
            return self.last((found + weighed).mean((2, 3)))

    torch.manual_seed(31)
    network = Places().eval()
    shapes = None if batch is not None else {"image": {0: torch.export.Dim("batch")}}
    program = torch.export.export(network, (torch.zeros(batch or 2, 3, *size),), dynamic_shapes=shapes)
    if framework == "torch":
        torch.export.save(program, folder / "net.pt2")
        return model_of("torch", folder / "net.pt2")
    torch.onnx.export(program, f=folder / "net.onnx", external_data=False, verbose=False)
    return model_of("onnx", folder / "net.onnx")


def _of_keras(framework: str, size: tuple[int, int], folder: Path) -> Model:
    import keras
    from keras import layers

    image = keras.Input((*size, 3), name="image")
    height, width = -(-size[0] // 2), -(-size[1] // 2)
    found = layers.Conv2D(6, 3, padding="same", strides=2, activation="relu", name="first")(image)
    found = layers.BatchNormalization(name="norm")(found)
    seen = layers.Softmax(axis=1, name="seen")(layers.Reshape((height * width, 6), name="places")(found))
    weighed = layers.Reshape((height, width, 6), name="back")(seen)
    pooled = layers.GlobalAveragePooling2D(name="pool")(layers.Add(name="both")([found, weighed]))
    network: Any = keras.Model(image, layers.Dense(4, name="last")(pooled))
    generator = np.random.default_rng(32)
    network.set_weights([generator.uniform(0.2, 1, item.shape).astype(np.float32) for item in network.get_weights()])
    if framework == "keras":
        network.save(folder / "net.keras")
        return model_of("keras", folder / "net.keras")
    network.export(folder / "saved", verbose=False)
    if framework == "tensorflow":
        return model_of("tensorflow", folder / "saved")
    import tensorflow as tf

    (folder / "net.tflite").write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(folder / "saved")).convert())
    return model_of("tflite", folder / "net.tflite")
