"""State that is assigned anew is lost in a program: a warning names the line, and nothing else."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import export

from compiler import to_edge
from compiler.edge.lost_updates import LostUpdateWarning

pytestmark = pytest.mark.slow

X = torch.ones(2)


class Base(nn.Module):
    """State of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("c", torch.zeros(2))
        self.plain = torch.zeros(2)
        self.items = [torch.zeros(2), torch.zeros(2)]
        self.named = {"h": torch.zeros(2)}
        self.flag = True


class Buffer(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.c = self.c + 1  # lost: c
        return x + self.c


class Plain(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.plain = torch.tanh(self.plain * 2 + x)  # lost: plain
        return x + self.plain


class Late(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        new = torch.tanh(self.c + x)
        self.c = new  # lost: c
        return new * 2


class Detached(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        new = torch.tanh(self.plain + x)
        self.plain = new.detach()  # lost: plain
        return new * 2


class Last(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = x - self.plain
        self.plain = x  # lost: plain
        return out


class Listed(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.items[1] = self.items[1] + x  # lost: items_1
        return self.items[1] * 2


class Named(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.named["h"] = self.named["h"] + x  # lost: named__h
        return self.named["h"] * 2


class Several(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.c, y = self.c * 2 + x, x * 3  # lost: c
        return self.c + y


class Branch(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 2:
            self.c = self.c + x  # lost: c
        return self.c * 2


class Helper(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.advance(x)
        return self.c * 2

    def advance(self, x: torch.Tensor) -> None:
        self.c = self.c + x  # lost: c


class Twice(nn.Module):
    """The same class as two submodules, one in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.more = Late(), nn.ModuleList([Last()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.more[0](self.first(x))


class FromOutside(nn.Module):
    """A module that changes the state of its part."""

    def __init__(self) -> None:
        super().__init__()
        self.part = InPlace()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.part.plain = self.part.plain + x  # lost: part.plain
        return self.part(x) + self.part.plain


class Augmented(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.c += x
        return self.c * 2


class InPlace(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.c.copy_(self.c + x)
        return self.c * 2


class Cached(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.plain = x * 2
        self.c = self.plain + 1
        return self.plain + self.c


class Moved(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.plain = self.plain.to(x.device).detach()
        c = self.c.contiguous()
        self.c = c
        return self.plain + self.c + x


class Restored(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        old = self.plain
        self.plain = old + x
        y = self.plain * 2
        self.plain = old
        return y


class NotTaken(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.flag:
            self.c = self.c + x
        return self.c + x


class Returned(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.c + x
        if self.flag:
            return y
        self.c = y
        return y * 2


class Rebuilt(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.plain.shape != (3,):
            self.plain = torch.arange(3.0)
        return self.plain.sum() + x + self.c

    def reset(self) -> None:
        self.c = torch.zeros(2)


class Counted(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls = getattr(self, "calls", 0) + 1
        y = self.c + x
        self.kept = y
        return y


class LocalName(Base):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        c = self.c + x
        other = InPlaceHolder()
        other.c = c
        return other.c


class InPlaceHolder:
    """Has an attribute of the same name."""

    c: Any = None


_LOST = (Buffer, Plain, Late, Detached, Last, Listed, Named, Several, Branch, Helper, FromOutside)
_KEPT = (
    Augmented,
    InPlace,
    Cached,
    Moved,
    Restored,
    NotTaken,
    Returned,
    Rebuilt,
    Counted,
    LocalName,
)


def _warned(module: nn.Module) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        program = export(module, (X,), strict=True)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        to_edge(program)
    return [str(one.message) for one in found if one.category is LostUpdateWarning]


@pytest.mark.parametrize("kind", _LOST)
def test_lost_update_is_named_with_line_and_remedy(kind: type[nn.Module]) -> None:
    source, first = inspect.getsourcelines(kind)
    (place,) = [at for at, line in enumerate(source) if "# lost: " in line]
    name = source[place].rsplit("# lost: ", 1)[1].strip()
    (text,) = _warned(kind())
    assert f"{__file__}:{first + place}: " in text
    assert f"the tensor {name}," in text
    assert "copy_()" in text
    assert ("register_buffer" in text) == (name != "c")


def test_lost_updates_of_submodules_are_named_each() -> None:
    texts = _warned(Twice())
    assert len(texts) == 2
    assert any("the tensor first.c," in text for text in texts)
    assert any("the tensor more.0.plain," in text for text in texts)


@pytest.mark.parametrize("kind", _KEPT)
def test_nothing_is_said_where_no_update_is_lost(kind: type[nn.Module]) -> None:
    assert _warned(kind()) == []


def test_program_written_in_place_keeps_its_state_and_the_lost_one_does_not() -> None:
    from runtime.api import Runtime

    for kind, wanted in ((InPlace, [2.0, 4.0]), (Buffer, [2.0, 2.0])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            buffer = to_edge(export(kind(), (X,), strict=True)).to_executorch().buffer
        method = Runtime().load_program(buffer).load_method("forward")
        assert [float(method.execute([X])[0][0]) for _ in range(2)] == wanted
