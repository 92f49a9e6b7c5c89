"""Networks on pictures: of torchvision and timm, and small ones of the same kinds."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, tuple[Tensor, ...]]

# torchvision's wheel registers its operators only beside a torch that was built with CUDA, and
# its import needs their names; none of these networks calls one.
_OPERATORS = """
nms(Tensor dets, Tensor scores, float iou) -> Tensor
qnms(Tensor dets, Tensor scores, float iou) -> Tensor
roi_align(Tensor x, Tensor rois, float s, int h, int w, int n, bool aligned) -> Tensor
_roi_align_backward(Tensor g, Tensor rois, float s, SymInt ph, SymInt pw, SymInt b, SymInt c, \
SymInt h, SymInt w, int n, bool aligned) -> Tensor
ps_roi_align(Tensor x, Tensor rois, float s, int h, int w, int n) -> (Tensor, Tensor)
_ps_roi_align_backward(Tensor g, Tensor rois, Tensor m, float s, SymInt ph, SymInt pw, int n, \
SymInt b, SymInt c, SymInt h, SymInt w) -> Tensor
roi_pool(Tensor x, Tensor rois, float s, int h, int w) -> (Tensor, Tensor)
_roi_pool_backward(Tensor g, Tensor rois, Tensor a, float s, SymInt ph, SymInt pw, SymInt b, \
SymInt c, SymInt h, SymInt w) -> Tensor
ps_roi_pool(Tensor x, Tensor rois, float s, int h, int w) -> (Tensor, Tensor)
_ps_roi_pool_backward(Tensor g, Tensor rois, Tensor m, float s, SymInt ph, SymInt pw, SymInt b, \
SymInt c, SymInt h, SymInt w) -> Tensor
deform_conv2d(Tensor x, Tensor w, Tensor o, Tensor m, Tensor b, SymInt sh, SymInt sw, SymInt ph, \
SymInt pw, SymInt dh, SymInt dw, SymInt g, SymInt og, bool mask) -> Tensor
_deform_conv2d_backward(Tensor gr, Tensor x, Tensor w, Tensor o, Tensor m, Tensor b, SymInt sh, \
SymInt sw, SymInt ph, SymInt pw, SymInt dh, SymInt dw, SymInt g, SymInt og, bool mask) \
-> (Tensor, Tensor, Tensor, Tensor, Tensor)
"""


@functools.cache
def give_operators() -> torch.library.Library:
    """Register the operators that torchvision's import needs, where they are not there."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in filter(None, _OPERATORS.splitlines()):
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            library.define(schema)
    return library


def torchvision_models() -> ModuleType:
    """Return torchvision.models, importable also where its operators do not load."""
    give_operators()
    import torchvision.models

    return torchvision.models


def picture(size: int = 96) -> tuple[Tensor, ...]:
    """Return one picture of three channels."""
    return (torch.randn(1, 3, size, size),)


def of_torchvision(name: str, size: int, **options: Any) -> Made:
    """Make a network of torchvision."""
    return getattr(torchvision_models(), name)(weights=None, **options), picture(size)


class OutOf(nn.Module):
    """A segmentation network with its one result as a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)["out"]


def segmentation(name: str) -> Made:
    """Make a segmentation network of torchvision."""
    make = getattr(torchvision_models().segmentation, name)
    return OutOf(make(weights=None, weights_backbone=None)), picture()


def of_timm(name: str, size: int, **options: Any) -> Made:
    """Make a network of timm."""
    give_operators()  # timm imports torchvision
    import timm

    return timm.create_model(name, pretrained=False, **options), picture(size)


class DetectionHead(nn.Module):
    """Boxes of one scale, the best twenty, those that overlap a better one without score."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(3, 16, 3, 2, 1)
        self.classes = nn.Conv2d(16, 5, 1)
        self.boxes = nn.Conv2d(16, 4, 1)

    def forward(self, x):
        features = functional.relu(self.features(x))
        classes = self.classes(features).flatten(2).sigmoid()
        boxes = self.boxes(features).flatten(2).transpose(1, 2)
        scores, labels = classes.max(1)
        best, index = scores.topk(20, dim=1)
        chosen = torch.gather(boxes, 1, index.unsqueeze(-1).expand(-1, -1, 4))
        half = chosen[..., 2:].exp() / 2
        low, high = chosen[..., :2] - half, chosen[..., :2] + half
        inner_low = torch.maximum(low[:, :, None], low[:, None])
        inner_high = torch.minimum(high[:, :, None], high[:, None])
        inner = (inner_high - inner_low).clamp(min=0).prod(-1)
        area = (high - low).prod(-1)
        union = area[:, :, None] + area[:, None] - inner + 1e-6
        keep = ~((inner / union).triu(1) > 0.5).any(dim=1)
        kept = torch.where(keep, best, torch.zeros_like(best))
        return torch.cat([low, high], -1), kept, torch.gather(labels, 1, index), keep


class _Residual(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, before), nn.GroupNorm(8, after)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(64, after)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, t):
        h = (
            self.conv1(functional.silu(self.norm1(x)))
            + self.time(functional.silu(t))[:, :, None, None]
        )
        return self.skip(x) + self.conv2(functional.silu(self.norm2(h)))


class UNet(nn.Module):
    """One level of a diffusion network: embedded time, attention, down and up."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64))
        self.first = nn.Conv2d(4, 32, 3, padding=1)
        self.high = _Residual(32, 32)
        self.down = nn.Conv2d(32, 64, 3, 2, 1)
        self.low = _Residual(64, 64)
        self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
        self.up = nn.ConvTranspose2d(64, 32, 2, 2)
        self.joined = _Residual(64, 32)
        self.last = nn.Conv2d(32, 4, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None].float() * torch.exp(torch.arange(16) * -0.5)[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        high = self.high(self.first(x), time)
        low = self.low(self.down(high), time)
        batch, channels, height, width = low.shape
        rows = low.flatten(2).transpose(1, 2)
        seen = self.attention(rows, rows, rows, need_weights=False)[0]
        low = low + seen.transpose(1, 2).reshape(batch, channels, height, width)
        wide = functional.interpolate(low, scale_factor=2, mode="nearest")[:, :32] + self.up(low)
        return self.last(self.joined(torch.cat([wide, high], 1), time))


class SuperResolution(nn.Module):
    """EDSR: residual blocks, and pixels out of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(2)) for _ in range(4)
        )
        self.up = nn.Sequential(nn.Conv2d(16, 64, 3, padding=1), nn.PixelShuffle(2))
        self.register_buffer("mean", torch.rand(1, 3, 1, 1))

    def forward(self, x):
        first = y = self.first(x - self.mean)
        for one, two in self.blocks:
            y = y + 0.1 * two(functional.relu(one(y)))
        return self.last(self.up(first + y)) + self.mean


def dcgan() -> Made:
    """Make the generator of a DCGAN."""

    def up(before: int, after: int, stride: int, padding: int) -> list[nn.Module]:
        conv = nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False)
        return [conv, nn.BatchNorm2d(after), nn.ReLU(inplace=True)]

    layers = [*up(100, 64, 1, 0), *up(64, 32, 2, 1), *up(32, 16, 2, 1)]
    last = nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False)
    return nn.Sequential(*layers, last, nn.Tanh()), (torch.randn(1, 100, 1, 1),)


VISION = {
    "mobilenet_v2": lambda: of_torchvision("mobilenet_v2", 96),
    "mobilenet_v3_small": lambda: of_torchvision("mobilenet_v3_small", 96),
    "resnet18": lambda: of_torchvision("resnet18", 96),
    "resnet50": lambda: of_torchvision("resnet50", 64),
    "efficientnet_b0": lambda: of_torchvision("efficientnet_b0", 96),
    "squeezenet": lambda: of_torchvision("squeezenet1_1", 96),
    "inception_v3": lambda: of_torchvision("inception_v3", 128, init_weights=False),
    "densenet": lambda: of_torchvision("densenet121", 64),
    "shufflenet": lambda: of_torchvision("shufflenet_v2_x0_5", 64),
    "regnet": lambda: of_torchvision("regnet_y_400mf", 64),
    "deeplab_mnv3": lambda: segmentation("deeplabv3_mobilenet_v3_large"),
    "lraspp_mnv3": lambda: segmentation("lraspp_mobilenet_v3_large"),
    "vit_tiny": lambda: of_timm("vit_tiny_patch16_224", 96, depth=4, img_size=96),
    "swin_tiny": lambda: of_timm("swin_tiny_patch4_window7_224", 112, img_size=112, depths=(2, 2)),
    "convnext_tiny": lambda: of_timm("convnext_tiny", 96, depths=(1, 1, 2, 1)),
    "detect_head": lambda: (DetectionHead(), picture(32)),
    "unet_block": lambda: (UNet(), (torch.randn(1, 4, 16, 16), torch.tensor([7]))),
    "edsr": lambda: (SuperResolution(), picture(24)),
    "dcgan": dcgan,
}
