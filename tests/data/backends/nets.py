"""Small networks whose payloads are kept here, by name: functions that return a module and inputs."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn


class M1(nn.Module):
    """Its activation has the same size in all dimensions: a wrong layout shows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.fc(torch.relu(self.conv(x)).flatten(1)))


class M2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.a = nn.Linear(16, 32)
        self.norm = nn.LayerNorm(32)
        self.b = nn.Linear(32, 16)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.erf(self.a(self.emb(tokens)))
        x = torch.cumsum(self.b(self.norm(x)), 1)
        values, indices = torch.topk(x, 4, dim=-1)
        return torch.softmax(values, -1), indices


class ConvNet(nn.Module):
    """Without its transposed convolution for MPS, whose compiler writes a plain one in its place."""

    def __init__(self, up: bool = True) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.bn = nn.BatchNorm2d(8)
        self.b = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.c = nn.Conv2d(8, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2) if up else nn.Conv2d(8, 4, 1)
        self.fc = nn.Linear(12, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.bn(self.a(x)))
        x = x + F.hardtanh(self.c(self.b(x)), 0.0, 6.0)
        y = torch.cat([F.max_pool2d(x, 2, 2), F.avg_pool2d(x, 3, stride=2, padding=1)], 1)
        z = self.up(y[:, :8]).mean((2, 3))
        return torch.softmax(self.fc(torch.cat([z, y.mean((2, 3))[:, 4:12]], 1)), -1)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, t, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.triu(torch.full((t, t), -10000.0), 1)
        a = torch.softmax(q @ k.transpose(-2, -1) * 8**-0.5 + mask, -1)
        return x + F.gelu(self.out((a @ v).transpose(1, 2).reshape(b, t, c)))


class Unary(nn.Module):
    """Without shrinking for Core ML, whose compiler ends with an error at it."""

    def __init__(self, shrink: bool = True) -> None:
        super().__init__()
        self.shrink = F.hardshrink if shrink else torch.atan

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        p = x.abs() + 0.5
        return (
            x.abs(), x.cos(), x.exp(), F.gelu(x), F.gelu(x, approximate="tanh"), self.shrink(x),
            F.hardswish(x), F.hardtanh(x, -0.5, 0.7), x.neg(), x.relu(), x.sigmoid(), x.sin(),
            p.sqrt(), p.rsqrt(), x.tanh(), x.round(), F.leaky_relu(x, 0.2), p.log10(),
            x.clamp(min=-0.3), x.clamp(-0.2, 0.4), x.pow(2.0), p.log(), x.floor(), x.ceil(), x.erf(),
            p.reciprocal(), x.tan(), x.sign(),
        )  # fmt: skip


class Steps(nn.Module):
    """Compilers take these apart, so that steps of a payload are of nodes that have none of their name."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x / (x.abs() + 1), F.logsigmoid(x), F.tanhshrink(x), F.glu(x, -1), x.sum()


class Binary(nn.Module):
    def forward(self, a: Tensor, b: Tensor, n: Tensor, m: Tensor) -> tuple[Tensor, ...]:
        return (
            a + b, torch.add(a, b, alpha=3), a - b, torch.sub(a, b, alpha=0.5), a * b, a / (b.abs() + 1),
            torch.minimum(a, b), torch.div(a, b.abs() + 1, rounding_mode="floor"),
            torch.pow(a.abs() + 0.1, b), a == a.round(), a < b, a <= b, a > b, a >= b, a + 2, a * 0.5,
            n + m, n * 3, n - m, n == m, n < 2, n >= m, (a > 0) & (b > 0), (a > 0) | (b > 0), ~(a > 0),
            torch.where(a > b, a, b), torch.logical_not(a > 0), a != 0, torch.maximum(a, b),
            torch.fmod(a, b.abs() + 1), torch.remainder(a, b.abs() + 1),
        )  # fmt: skip


class Shapes(nn.Module):
    def forward(self, x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        first, second = torch.split(x, [1, 3], dim=1)
        return (
            x.permute(0, 2, 3, 1), x.reshape(2, -1), x.unsqueeze(1).squeeze(1), x[:, 1], x[:, 1:3],
            x[:, ::2, 1:-1], x.expand(2, 4, 6, 6) + 0, torch.cat([x, x * 2], 2), first, second,
            x.flip([1, 3]), x.index_select(1, i), F.pad(x, (1, 2, 0, 1), value=0.5), x.repeat(1, 2, 1, 1),
            F.pixel_shuffle(x, 2), F.interpolate(x, scale_factor=2.0), x.mean((2, 3), keepdim=True),
            F.interpolate(x, size=[9, 9], mode="bilinear", align_corners=True), x.sum(1), x.amax(-1),
            x.amin(2, keepdim=True), x.argmax(1), torch.full_like(x, 2.0) + x, x.view(2, 4, 36).transpose(1, 2),
            torch.arange(0, 6, 1) + i.sum(), torch.zeros(2, 2) + x.mean(), torch.ones(3) * x.amax(),
            x.unfold(2, 3, 2) + 0, torch.gather(x.reshape(8, 36), 1, i.reshape(1, 2).expand(8, 2) + 3),
        )  # fmt: skip


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm2d(8)
        self.gn = nn.GroupNorm(2, 8)
        self.ln = nn.LayerNorm([6, 6])
        self.conv1d = nn.Conv1d(8, 4, 3, stride=2, padding=1)

    def forward(self, x: Tensor, grid: Tensor) -> tuple[Tensor, ...]:
        return (
            self.bn(x), self.gn(x), self.ln(x), self.conv1d(x[:, :, 0]), torch.log_softmax(x, 1),
            torch.softmax(x, -1), torch.bmm(x[:, 0], x[:, 1]), F.max_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False),
            F.grid_sample(x, grid, padding_mode="border", align_corners=True),
        )  # fmt: skip


class Mlp(nn.Module):
    """For quantizers: convolutions, a residual sum, pooling and linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(3, 8, 3, padding=1)
        self.b = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.c = nn.Conv2d(8, 8, 1)
        self.d = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(128, 32)
        self.out = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.a(x))
        x = x + self.c(torch.relu(self.b(x)))
        x = F.max_pool2d(self.d(x), 2, 2)
        return self.out(torch.relu(self.fc(x.flatten(1))))


class Linears(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(64, 32)
        self.b = nn.Linear(32, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(torch.relu(self.a(x)))


class Dynamic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.fc(x).reshape(x.shape[0] * 2, -1), 0)


class Sizes(nn.Module):
    """A delegate returns a size that another one takes: the sum between them is of neither."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.shape[0]
        y = self.fc(x).reshape(rows * 2, 4)
        return torch.relu(torch.cumsum(y, 0).reshape(rows, 8))


class Sharing(nn.Module):
    """One debug handle for nodes of several delegates, with kernels between them."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.PReLU(5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return F.logsigmoid(x), self.slope(x)


class Strided(nn.Module):
    """Layers that the compiler of Vulkan joins to others, or leaves with a handle of several."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)
        self.out = nn.ConvTranspose2d(6, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.relu6(self.up(x)))


class Slopes(nn.Module):
    """An activation that is taken apart, so that all quantization of it has one handle."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.PReLU(4, 0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.slope(x)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 8, batch_first=True)
        self.lstm = nn.LSTM(8, 5, 2, bidirectional=True)
        self.rnn = nn.RNN(10, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y, last = self.gru(x)
        z, (h, c) = self.lstm(y)
        return (self.rnn(z)[0], y, last, h, c)


class Indexing(nn.Module):
    """Indices are within range: what happens outside of it is not defined everywhere."""

    def forward(self, x: Tensor, i: Tensor, j: Tensor) -> tuple[Tensor, ...]:
        return (
            torch.sort(x, -1)[0], torch.argsort(x, 1, descending=True), torch.topk(x, 3, 0, largest=False)[0],
            torch.cumsum(x, 0), torch.gather(x, 1, j), torch.scatter(x, 1, j, x[:, :2] * 2),
            torch.scatter_add(x, 1, j, x[:, :2]), x[i], x[:, i], x[i, i], torch.index_select(x, 1, i),
            F.embedding(i, x), F.one_hot(i, 7), torch.tril(x), torch.triu(x, 1), x.index_put((i,), x[:2] * 3),
            torch.index_put(x, (i, i), torch.ones(2)), x.masked_fill(x > 0, -1.0), torch.where(x > 0, x, -x),
            x.argmin(0), x.max(1)[0], x.max(1)[1], x.std(1), x.var(0), torch.prod(x, 1), torch.logsumexp(x, 1),
            torch.linalg.vector_norm(x, dim=1), torch.stack([x, x + 1], 1), x.roll(2, 1),
            torch.nn.functional.normalize(x, dim=1), torch.atleast_2d(x[0]),
            x.repeat_interleave(2, 1), torch.einsum("ij,kj->ik", x, x), torch.baddbmm(x[None], x[None, :, :4], x[None, :4]),
        )  # fmt: skip


class Resizing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up1 = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)
        self.up2 = nn.ConvTranspose1d(4, 4, 4, stride=2, padding=1, groups=2)
        self.conv3d = nn.Conv3d(2, 3, (1, 3, 3), padding=(0, 1, 1), dilation=(1, 1, 1))
        self.wide = nn.Conv2d(4, 4, 3, dilation=2, padding=2, groups=2)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return (
            self.up1(x), self.up2(x[:, :, 0]), self.conv3d(x.reshape(2, 2, 2, 6, 6)), self.wide(x),
            F.interpolate(x, scale_factor=2.0, mode="bilinear"), F.interpolate(x, size=[9, 4], mode="nearest"),
            F.interpolate(x, size=[11, 5], mode="bilinear", align_corners=True), F.pad(x, (1, 2, 2, 1), mode="reflect"),
            F.pad(x, (2, 0, 1, 1), mode="replicate"), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True), F.adaptive_avg_pool2d(x, (3, 2)), F.avg_pool1d(x[:, :, 0], 2),
            F.adaptive_avg_pool2d(x, 1), F.pixel_unshuffle(x, 2), F.unfold(x, 2),
            F.elu(x), F.softplus(x), F.silu(x), F.mish(x), F.hardsigmoid(x), F.relu6(x), F.prelu(x, torch.full((4,), 0.3)),
            F.glu(x, 1), F.softsign(x), F.threshold(x, 0.1, 0.0), F.celu(x), F.selu(x), F.logsigmoid(x), F.tanhshrink(x),
        )  # fmt: skip


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax()
        return torch.cond(x.sum() > 0, lambda a, b: a / b, lambda a, b: a * 2 - b, (x, scale))


class Cache(nn.Module):
    """State that a run leaves behind."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("cache", torch.zeros(6, 4))
        self.register_buffer("sum", torch.zeros(1, 4), persistent=False)

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        y = self.fc(x)
        self.sum.add_(y)
        self.cache.copy_(self.cache.index_put((at,), y))
        return torch.softmax(x @ self.cache.mT, -1) @ self.cache + self.sum


class Twice(nn.Module):
    """A layer that is called twice, with an activation that quantization takes in."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.relu(self.fc(x)))


class Grouped(nn.Module):
    """A convolution in groups, whose parts share a handle with the batch norm behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(4, 8, 3, padding=1)
        self.grouped = nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=2)
        self.norm = nn.BatchNorm1d(8)
        self.fc = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.grouped(torch.tanh(self.first(x)))))
        return self.fc(x.mean(-1))


class Excite(nn.Module):
    """Channels that are weighted: quantizers give each reader of a value its own rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 8, 3, padding=1, stride=2, groups=2)
        self.fewer, self.more = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.hardswish(self.conv(x))
        share = torch.relu(self.fewer(nn.functional.adaptive_avg_pool2d(x, 1)))
        return x * nn.functional.hardsigmoid(self.more(share))


class CountingCache(nn.Module):
    """State of which every part is returned, as compilers that alias buffers take it."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("runs", torch.zeros(1))
        self.register_buffer("kept", torch.zeros(2, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.runs.add_(1)
        self.kept.copy_(torch.tanh(self.fc(x) + self.kept))
        return self.kept * self.runs


class Constants(nn.Module):
    """Results that are constants, and operands whose elements are all equal."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x + torch.full((2, 5), 3.5), torch.arange(3.0), torch.full((2, 2), 2.0), x * 2


class Summed(nn.Module):
    """Two convolutions whose values meet in a sum, activations, and a layer behind a mean."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(x))
        y = torch.relu(self.second(y) + y)
        return torch.tanh(self.head(y.mean((2, 3))))


class Spectral(nn.Module):
    """Frequencies by matrix products, mixed by einsum, and a layer before an order of its values."""

    def __init__(self):
        super().__init__()
        angles = torch.arange(8)[:, None] * torch.arange(3)[None] * (torch.pi / 4)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", -angles.sin())
        self.register_buffer("back", angles.cos().t() / 4)
        self.real = nn.Parameter(torch.randn(4, 4, 3))
        self.imaginary = nn.Parameter(torch.randn(4, 4, 3))
        self.layer = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        real = torch.einsum("bik,iok->bok", x @ self.cosine, self.real)
        real = real - torch.einsum("bik,iok->bok", x @ self.sine, self.imaginary)
        return real @ self.back, torch.sort(self.layer(x))[0]


class Residual(nn.Module):
    """A convolution for each channel, a norm and two layers behind it, twice: their values meet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 2, 2)
        self.deep = nn.ModuleList(nn.Conv2d(6, 6, 3, padding=1, groups=6) for _ in range(2))
        self.norm = nn.ModuleList(nn.LayerNorm(6) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(6, 8) for _ in range(2))
        self.back = nn.ModuleList(nn.Linear(8, 6) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for deep, norm, wide, back in zip(self.deep, self.norm, self.wide, self.back, strict=True):
            y = norm(deep(x).permute(0, 2, 3, 1))
            x = x + back(torch.tanh(wide(y))).permute(0, 3, 1, 2)
        return x


def _seeded(net: nn.Module, *inputs: Tensor) -> tuple[nn.Module, tuple[Tensor, ...]]:
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
            nn.init.uniform_(module.weight, 0.5, 2.0)
    return net.eval(), inputs


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 6, batch_first=True)
        self.out = nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.gru(x)[0][:, -1])


class Copies(nn.Module):
    """A quantized value that two partitions and a kernel read, and a softmax after a kernel."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        values, indices = torch.cat([x, x * 2], 1).topk(3)
        empty = torch.cat([x[:0], x, x * 2], 0)  # is left to a kernel
        return empty, torch.stack([x, x], 1), torch.softmax(values, -1), indices


class Heads(nn.Module):
    """One layer that two delegates have, since a kernel reads the results of the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        best = self.layer(x).argmax(-1)
        values, indices = self.layer(x).softmax(-1).topk(2)
        return best, values, indices, x.cumsum(-1)


class Normed(nn.Module):
    """A norm that compilers take apart, and halves of what is behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.layer = nn.Linear(6, 12)

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.layer(self.norm(x)).chunk(2, -1)
        return x + one * two.sigmoid()


class Moved(nn.Module):
    """A batch norm that is folded, and an attention whose scales are moved past its views."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.queries = nn.Linear(8, 8)
        self.pair = nn.Linear(8, 8)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)
        nn.init.uniform_(self.norm.weight, 0.5, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardtanh(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        q = self.queries(y).view(1, -1, 2, 4).transpose(1, 2)
        k, v = self.pair(y).split(4, -1)
        k, v = (one[:, None].expand(-1, 2, -1, -1) for one in (k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Several(nn.Module):
    """Slices that are one layer with two outputs, and divisions of which one is decomposed."""

    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Linear(6, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        both = self.both(x)
        value, gate = both[:, :4], both[:, 4:]
        whole = (x * 8).to(torch.int64)
        down = torch.div(whole, whole.abs() + 2, rounding_mode="floor")
        cut = torch.div(whole - 3, whole.abs() + 2, rounding_mode="trunc")
        return value * torch.sigmoid(gate), down, cut


class Integers(nn.Module):
    """What NNCF and OpenVINO do to integers: weights, a norm of them and a sum in their steps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=1, bias=False)
        self.groups = nn.GroupNorm(3, 6, eps=1e-2)
        self.norm = nn.LayerNorm(8)
        self.up, self.down = nn.Linear(6, 10), nn.Linear(10, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        words = x[:, 0]
        mixed = self.down(F.gelu(self.up(self.norm(words).mT))).mT
        return F.hardtanh(self.conv(x)), F.silu(self.groups(x.repeat(1, 2, 1, 1))), words + mixed


_OF_ONE: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "m1": (M1, (1, 3, 8, 8)),
    "conv": (ConvNet, (1, 3, 16, 16)),
    "attention": (Attention, (1, 6, 16)),
    "steps": (Steps, (2, 4)),
    "quantized": (Mlp, (1, 3, 8, 8)),
    "linears": (Linears, (3, 64)),
    "gru": (Gru, (1, 5, 8)),
    "dynamic": (Dynamic, (5, 8)),
    "sizes": (Sizes, (5, 8)),
    "sharing": (Sharing, (3, 5)),
    "strided": (Strided, (1, 4, 5, 6)),
    "summed": (Summed, (1, 3, 4, 6)),
    "slopes": (Slopes, (1, 4, 3, 3)),
    "recurrent": (Recurrent, (2, 5, 6)),
    "resizing": (Resizing, (2, 4, 6, 6)),
    "branches": (Branches, (2, 3)),
    "twice": (Twice, (3, 8)),
    "counting_cache": (CountingCache, (2, 4)),
    "constants": (Constants, (2, 5)),
    "copies": (Copies, (4, 4)),
    "heads": (Heads, (4, 6)),
    "normed": (Normed, (2, 4, 6)),
    "moved": (Moved, (1, 3, 3, 3)),
    "several": (Several, (4, 6)),
    "grouped": (Grouped, (2, 4, 8)),
    "excite": (Excite, (1, 4, 8, 8)),
    "integers": (Integers, (1, 3, 6, 8)),
    "residual": (Residual, (1, 3, 8, 12)),
    "spectral": (Spectral, (2, 4, 8)),
}
"""Networks of one input, and its shape."""


def network(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a network and its inputs."""
    torch.manual_seed(0)
    if name in _OF_ONE:
        kind, sizes = _OF_ONE[name]
        return _seeded(kind(), torch.randn(sizes))
    if name == "m2":
        return _seeded(M2(), torch.randint(0, 50, (1, 6)))
    if name == "convs":
        return _seeded(ConvNet(up=False), torch.randn(1, 3, 16, 16))
    if name == "unary":
        return _seeded(Unary(), torch.randn(2, 3, 5) * 3)
    if name == "unaries":
        return _seeded(Unary(shrink=False), torch.randn(2, 3, 5) * 3)
    if name == "binary":
        ints = torch.randint(-3, 4, (2, 2, 3), dtype=torch.int32)
        return _seeded(Binary(), torch.randn(2, 1, 4), torch.randn(3, 4), ints[0], ints[1])
    if name == "shapes":
        return _seeded(Shapes(), torch.randn(2, 4, 6, 6), torch.tensor([2, 0]))
    if name == "norms":
        grid = torch.rand(2, 4, 5, 2) * 2.4 - 1.2
        return _seeded(Norms(), torch.randn(2, 8, 6, 6), grid)
    if name == "indexing":
        return _seeded(
            Indexing(), torch.randn(5, 6), torch.tensor([2, 0]), torch.randint(0, 6, (5, 2))
        )
    if name == "cache":
        return _seeded(Cache(), torch.randn(1, 4), torch.tensor([2]))
    raise KeyError(name)
