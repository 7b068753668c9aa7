"""Models that Lanewise builds with random weights: one description each, written as ONNX or as a torch module."""

from __future__ import annotations

from dataclasses import dataclass

from lanewise.errors import unknown_name
from lanewise.loadtest.models.networks import LARGE, MINI, Encoder, Pixels, ResNet50, SmallCnn
from lanewise.loadtest.models.ops import NeuralNetwork
from lanewise.loadtest.models.shapes import ModelSize, size_of
from lanewise.loadtest.spec import SampleSpec


@dataclass(frozen=True, slots=True)
class Model:
    """A model by name; its weights are random, so its answers mean nothing while its work is that of the real one."""

    name: str
    about: str
    network: NeuralNetwork

    @property
    def spec(self) -> SampleSpec:
        """One sample."""
        return self.network.spec

    def size(self) -> ModelSize:
        """Parameters, multiply-adds of one sample, shape of its output."""
        return size_of(self.network)


def model(name: str, layout: str = "hwc") -> Model:
    """The model of that name; `layout` of image samples is hwc or chw. UnknownName otherwise."""
    models: dict[str, tuple[str, NeuralNetwork]] = {
        "small-cnn": ("a small convolutional network for laptops, 224x224 images", SmallCnn(Pixels(layout))),
        "resnet50": ("ResNet50 v1.5 (stride in the 3x3), 224x224 images", ResNet50(Pixels(layout))),
        "bert": ("a BERT-style encoder of BERT-Mini's shape, sequences of 384", Encoder(MINI)),
        "bert-large": ("a BERT-style encoder of BERT-large's shape, sequences of 384", Encoder(LARGE)),
    }
    if name not in models:
        raise unknown_name("model", name, models)
    return Model(name, *models[name])


MODELS = ("small-cnn", "resnet50", "bert", "bert-large")

__all__ = ["MODELS", "Model", "ModelSize", "NeuralNetwork", "model"]
