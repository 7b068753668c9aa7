"""Datasets of a load test: samples of one size by index, some with labels."""

from lanewise.loadtest.datasets.base import Dataset
from lanewise.loadtest.datasets.images import ImageFolder
from lanewise.loadtest.datasets.synthetic import Synthetic

__all__ = ["Dataset", "ImageFolder", "Synthetic"]
