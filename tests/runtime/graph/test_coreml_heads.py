"""Classifiers, cut-outs of boxes and convolutions of quantized weights of Core ML."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from runtime import Runtime
from runtime.backends.coreml.binding import OPERATORS
from schema.payloads.coreml.package import program_of
from tests.conftest import DATA

FOLDER = DATA / "coreml/classifiers"
_crop: Any = OPERATORS["crop_resize"]
_conv: Any = OPERATORS["conv_quantized"]


@pytest.mark.parametrize(("name", "classes"), [("str", [0, 1, 2]), ("int", [10, 20, 30])])
def test_classifier_returns_its_class_and_the_probabilities(name: str, classes: list[int]) -> None:
    inputs, (expected,) = torch.load(FOLDER / "classifier.pt")
    method = Runtime().load_program(FOLDER / f"classifier_{name}.mlpackage").load_method("forward")
    label, probabilities = method.execute(inputs)
    torch.testing.assert_close(probabilities, expected.detach(), rtol=1e-6, atol=1e-6)
    assert label.dtype is torch.int64
    assert label.item() == classes[int(expected.argmax())]


def _image() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 3, 7, 9)


def test_whole_image_as_a_box_is_a_resize_with_aligned_corners() -> None:
    x = _image()
    boxes = torch.tensor([[0.0, 0, 6, 8], [0.0, 0, 6, 8]])
    made = _crop(x, boxes=boxes, target_height=4, target_width=5, sampling_mode="ALIGN_CORNERS")
    expected = F.interpolate(x, (4, 5), mode="bilinear", align_corners=True)
    torch.testing.assert_close(made, expected)


def test_box_of_whole_pixels_is_the_pixels() -> None:
    x = _image()
    roi = torch.tensor([[1.0, 2, 4, 7]]).reshape(1, 1, 4, 1, 1)
    made = _crop(x, roi, target_height=4, target_width=6, sampling_mode="STRICT_ALIGN_CORNERS")
    assert made.shape == (1, 2, 3, 4, 6)
    torch.testing.assert_close(made[0], x[:, :, 1:5, 2:8])
    by_width = torch.tensor([[2.0, 1, 7, 4]]).reshape(1, 1, 4, 1, 1)
    modes = {"sampling_mode": "STRICT_ALIGN_CORNERS", "box_coordinate_mode": "CORNERS_WIDTH_FIRST"}
    again = _crop(x, by_width, target_height=4, target_width=6, **modes)
    torch.testing.assert_close(again, made)
    centred = torch.tensor([[2.5, 4.5, 3, 5]]).reshape(1, 1, 4, 1, 1)
    modes["box_coordinate_mode"] = "CENTER_SIZE_HEIGHT_FIRST"
    torch.testing.assert_close(_crop(x, centred, target_height=4, target_width=6, **modes), made)


def test_index_before_a_box_chooses_the_image() -> None:
    x = _image()
    roi = torch.tensor([[1.0, 0, 0, 6, 8], [0, 0, 0, 6, 8]]).reshape(2, 1, 5, 1, 1)
    made = _crop(x, roi, target_height=7, target_width=9, sampling_mode="ALIGN_CORNERS")
    assert made.shape == (2, 1, 3, 7, 9)
    torch.testing.assert_close(made[:, 0], x.flip(0))


def test_normalized_boxes_are_scaled_and_what_lies_outside_is_padding() -> None:
    x = _image()
    half = torch.tensor([[0.0, 0, 0.5, 0.5]])
    whole = {"normalized_coordinates": True, "sampling_mode": "ALIGN_CORNERS"}
    made = _crop(x[:1], boxes=half, target_height=4, target_width=5, **whole)
    torch.testing.assert_close(made, x[:1, :, :4, :5])
    beyond = torch.tensor([[-1.0, 0, 6, 8]])
    made = _crop(
        x[:1], boxes=beyond, target_height=8, target_width=9, pad_value=7.0,
        sampling_mode="ALIGN_CORNERS",
    )  # fmt: skip
    assert bool((made[:, :, 0] == 7).all())
    torch.testing.assert_close(made[:, :, 1:], x[:1])


def test_quantized_weights_are_scaled_by_output_channel() -> None:
    x, stored = _image(), torch.randint(0, 256, (4, 3, 3, 3), dtype=torch.uint8)
    scale, offset = torch.rand(4), torch.randn(4)
    made = _conv(x, stored, "linear", scale, offset, strides=(2, 1), pad_type="same")
    real = stored.float() * scale.reshape(-1, 1, 1, 1) + offset.reshape(-1, 1, 1, 1)
    expected = OPERATORS["conv"](x, real, strides=(2, 1), pad_type="same")
    torch.testing.assert_close(made, expected)
    with pytest.raises(ValueError, match="type lut"):
        _conv(x, stored, "lut", scale, offset)


def test_package_of_a_classifier_has_tensors_at_its_interface() -> None:
    parts = program_of(FOLDER / "classifier_int.mlpackage")
    assert parts
