"""Seeded random nets, compiled and run as users do, with an error planted in the run or none.

``python -m tests.inspector.gap_families 500 3`` prints a table of what the numeric gap says of 500
of them, without an error and with each of three.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from compiler import to_edge_transform_and_lower
from compiler.backends.xnnpack import XnnpackPartitioner
from compiler.quantize.program import quantize_program
from inspector.files.load import load_session
from inspector.files.payloads import delegate_payload
from inspector.join.operands import plan_operands
from inspector.numerics.replay.analysis import Options, analyse_gap
from inspector.numerics.report import RunGap
from runtime import Runtime
from runtime.backends.xnnpack.torch_engine import TorchEngine
from runtime.execution import ways
from runtime.execution.chains import Chains
from schema import program as pte
from schema.payloads.identity import node_identity
from schema.program import instructions
from schema.program import model as m

MODES = ("float", "dynamic", "static", "weight-only")
WAYS = (("portable", "torch"), ("xnnpack", "torch"), ("xnnpack", "native"))
Inputs = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Case:
    """One program and how it is compiled and run."""

    seed: int
    kind: str
    mode: str
    backend: str
    engine: str

    def __str__(self) -> str:
        return f"{self.kind} {self.mode} {self.backend} {self.engine} seed {self.seed}"


@dataclass(frozen=True)
class Planted:
    """Where an error is planted: an instruction, or a payload node of the call there."""

    instruction: int
    partition: int = -1
    node: int = -1


# ---- nets
class Layers(nn.Module):
    """Layers one behind the other, some of them beside a copy of what they read."""

    def __init__(self, layers: Sequence[nn.Module], beside: Sequence[bool]) -> None:
        super().__init__()
        self.layers, self.beside = nn.ModuleList(layers), beside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, beside in zip(self.layers, self.beside, strict=True):
            made = layer(x)
            x = made + x if beside and made.shape == x.shape else made
        return x


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.layer(x)[0])


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, *, ids: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(20, width) if ids else None
        self.block = nn.TransformerEncoderLayer(
            width, heads, 2 * width, batch_first=True, norm_first=ids, activation="gelu"
        )
        self.out = nn.Linear(width, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.block(x if self.table is None else self.table(x)))


class Operators(nn.Module):
    """Operators on values made before, several of them alike: the hardest to tell apart."""

    def __init__(self, plan: Sequence[tuple[str, int, int]]) -> None:
        super().__init__()
        self.plan = plan

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        made = [x, y]
        for name, one, other in self.plan:
            made.append(_OPERATORS[name](made[one], made[other]))
        return torch.stack([value.mean() for value in made[2:]]).sum() + made[-1]


_OPERATORS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: (a * b).clamp(-3, 3),
    "turn": lambda a, b: a.transpose(0, 1).contiguous(),
    "halves": lambda a, b: torch.cat([a[:, 2:], b[:, :2]], 1),
    "split": lambda a, b: sum(torch.split(a, 2, 1)).repeat(1, 2),
    "rows": lambda a, b: torch.stack([a[0], a[1], b[2], b[3]]),
    "tanh": lambda a, b: torch.tanh(a),
    "sigmoid": lambda a, b: torch.sigmoid(b),
    "norm": lambda a, b: nn.functional.layer_norm(a, (4,)),
    "soft": lambda a, b: torch.softmax(a, -1),
    "product": lambda a, b: torch.mm(a, b) / 4,
    "views": lambda a, b: a.reshape(2, 8).relu().view(4, 4),
}


def _mlp(draw: random.Random) -> tuple[nn.Module, Inputs]:
    widths = [draw.choice((4, 8, 12)) for _ in range(draw.randint(3, 6))]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), draw.choice(_ACTIVATIONS)()]
        layers += [nn.LayerNorm(after)] if draw.random() < 0.4 else []
    beside = [draw.random() < 0.3 for _ in layers]
    rows = draw.choice(((3,), (2, 3), (1,)))
    return Layers(layers, beside), (torch.randn(*rows, widths[0]),)


_ACTIVATIONS = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.Hardswish, nn.SiLU, nn.ReLU6)


def _conv(draw: random.Random) -> tuple[nn.Module, Inputs]:
    size = draw.choice((4, 6, 8))
    channels = [draw.choice((3, size)), *(draw.choice((4, size, 8)) for _ in range(2))]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(channels):
        layers.append(nn.Conv2d(before, after, 3, padding=1, bias=draw.random() < 0.5))
        layers += [nn.BatchNorm2d(after)] if draw.random() < 0.6 else []
        layers.append(draw.choice(_ACTIVATIONS)())
        layers += [nn.Conv2d(after, after, 3, padding=1, groups=after)] * (draw.random() < 0.3)
        layers += [nn.MaxPool2d(3, 1, 1)] if draw.random() < 0.3 else []
    layers += [nn.AvgPool2d(2), nn.Flatten(), nn.Linear(channels[-1] * (size // 2) ** 2, 5)]
    beside = [draw.random() < 0.3 for _ in layers]
    return Layers(layers, beside), (torch.randn(draw.choice((1, 2)), channels[0], size, size),)


def _recurrent(draw: random.Random) -> tuple[nn.Module, Inputs]:
    make = draw.choice((nn.GRU, nn.LSTM, nn.RNN))
    width, layers, both = draw.choice((4, 8)), draw.choice((1, 1, 2)), draw.random() < 0.3
    first = draw.random() < 0.7
    layer = make(6, width, layers, batch_first=first, bidirectional=both)
    steps, batch = draw.randint(2, 5), draw.choice((1, 2))
    shape = (batch, steps, 6) if first else (steps, batch, 6)
    return Recurrent(layer, width * (1 + both)), (torch.randn(*shape),)


def _attention(draw: random.Random) -> tuple[nn.Module, Inputs]:
    ids, rows = draw.random() < 0.5, draw.randint(2, 5)
    inputs = torch.randint(0, 20, (1, rows)) if ids else torch.randn(2, rows, 8)
    return Attention(8, draw.choice((1, 2)), ids=ids), (inputs,)


def _operators(draw: random.Random) -> tuple[nn.Module, Inputs]:
    names = sorted(_OPERATORS)
    count = draw.randint(5, 14)
    plan = [(draw.choice(names), *draw.choices(range(2 + at), k=2)) for at in range(count)]
    return Operators(plan), (torch.randn(4, 4), torch.randn(4, 4))


NETS: dict[str, Callable[[random.Random], tuple[nn.Module, Inputs]]] = {
    "mlp": _mlp,
    "conv": _conv,
    "recurrent": _recurrent,
    "attention": _attention,
    "operators": _operators,
}


def cases(count: int, first: int = 0) -> list[Case]:
    """Return so many cases, evenly of all kinds, modes and ways."""
    ways = itertools.product(WAYS, MODES, NETS)
    every = list(ways)
    random.Random(11).shuffle(every)
    found = itertools.islice(itertools.cycle(every), first, first + count)
    return [
        Case(seed, kind, mode, *way) for seed, (way, mode, kind) in enumerate(found, start=first)
    ]


# ---- compiling and running
@dataclass(frozen=True)
class Made:
    """A compiled case: where its files are, and the inputs of its run."""

    case: Case
    folder: Path
    inputs: Inputs


def compiled(case: Case, folder: Path) -> Made:
    """Compile a case into a folder."""
    torch.manual_seed(case.seed)
    module, inputs = NETS[case.kind](random.Random(case.seed))
    return compiled_net(case, module.eval(), inputs, folder, strict=True)


def compiled_net(
    case: Case, module: nn.Module, inputs: Inputs, folder: Path, *, strict: bool = False
) -> Made:
    """Compile a net in the mode and for the backend of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(module, inputs, strict=strict)
        if case.mode != "float":
            program = quantize_program(
                program, case.mode, [inputs, tuple(_other(one) for one in inputs)]
            )
        parts = [XnnpackPartitioner()] if case.backend == "xnnpack" else None
        done = to_edge_transform_and_lower(
            program, partitioner=parts, generate_etrecord=True
        ).to_executorch()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(done.buffer)
    done.get_etrecord().save(folder / "model.etrecord")
    return Made(case, folder, inputs)


def _other(value: torch.Tensor) -> torch.Tensor:
    return torch.randn_like(value) if value.is_floating_point() else value


def gap(made: Made, planted: Planted | None = None) -> RunGap:
    """Run a compiled case with all intermediate values and compare it."""
    runtime = Runtime.get()
    with warnings.catch_warnings(), _planting(planted):
        warnings.simplefilter("ignore")
        program = runtime.load_program(
            str(made.folder / "model.pte"), enable_etdump=True, debug_buffer_size=1
        )
        program.load_method("forward", engine=made.case.engine).execute(list(made.inputs))
        files = [str(made.folder / name) for name in ("run.etdp", "run.debug")]
        program.write_etdump_result_to_file(*files)
        session = load_session([str(made.folder)])
        (found,) = analyse_gap(session, Options(inputs=made.inputs)).runs
    return found


def places(made: Made, count: int) -> list[Planted]:
    """Return some places where an error can be planted: instructions, nodes inside of calls."""
    program = pte.decode((made.folder / "model.pte").read_bytes())
    plan = program.plan("forward")
    found: list[Planted] = []
    for step, (_, _, instruction) in enumerate(instructions(plan)):
        if isinstance(instruction.instr_args, m.KernelCall):
            found.append(Planted(step))
        elif isinstance(instruction.instr_args, m.DelegateCall) and made.case.engine == "torch":
            partition = instruction.instr_args.delegate_index
            graph = delegate_payload(program, plan, partition).graph
            nodes = len(graph.nodes) if graph is not None else 0
            found += [Planted(step, partition, node) for node in range(nodes)]
    return random.Random(made.case.seed).sample(found, min(count, len(found)))


HITS = ("named", "after", "elsewhere", "uncertain", "unseen")


def hit(planted: Planted, run: RunGap) -> str:
    """Return one of ``HITS``: whether the planted place is the first divergence.

    ``after`` is another place of the same call, or an instruction behind one that nothing logged.
    """
    first = run.first_divergence()
    if first is None:
        return "uncertain" if any(row.differs for row in run.rows) else "unseen"
    if first.instruction != planted.instruction:
        return "after" if first.instruction > planted.instruction else "elsewhere"
    named = planted.node < 0 or first.delegate == node_identity(planted.node)
    return "named" if named else "after"


@contextmanager
def _planting(planted: Planted | None) -> Iterator[None]:
    """Spoil what is made at a place while a program runs, before it is logged."""
    record, run_node = ways.record, TorchEngine.run_node

    def after(chains: Chains, tracer: Any, chain: int, index: int, times: Any) -> None:
        if planted is not None and planted.node < 0 and index == planted.instruction:
            for value in plan_operands(chains.plan)[index].writes:
                held = chains.table.resolve(chains.table.items[value])
                for one in held if isinstance(held, list) else [held]:
                    _spoil(one)
        record(chains, tracer, chain, index, times)

    def inside(self: TorchEngine, index: int) -> None:
        run_node(self, index)
        if planted is not None and (self.plan.partition, index) == (
            planted.partition,
            planted.node,
        ):
            ident = self.plan.nodes[index].outputs[0]
            value = self.value(ident)
            _spoil(value)
            self.replace(ident, value)

    ways.record, TorchEngine.run_node = after, inside
    try:
        yield
    finally:
        ways.record, TorchEngine.run_node = record, run_node


def _spoil(value: object) -> None:
    """Change one number of a tensor by more than any rounding does."""
    if not isinstance(value, torch.Tensor) or not value.numel() or value.dtype in _KEPT:
        return
    flat = value.reshape(-1)
    place = value.numel() // 2
    if value.is_floating_point():
        flat[place] += 1 + 2 * float(flat.abs().max())
    else:
        flat[place] = 100 if int(flat[place]) < 0 else -100
    value.copy_(flat.reshape(value.shape))


_KEPT = (torch.int32, torch.int64, torch.bool)  # indices, which would only stop the run


# ---- a table
COLUMNS = ("cases", "false", "outputs", "compared", "unsure", *HITS)


def judged(case: Case, folder: Path, errors: int = 3) -> Counter[str]:
    """Return what the gap says of a case: without an error, and with each of some planted ones."""
    made = compiled(case, folder)
    run = gap(made)
    found = Counter(
        cases=1,
        false=int(run.first_divergence() is not None),
        outputs=len(run.outside()),
        compared=sum(one.compared for one in run.outside()),
        unsure=sum(one.uncertain for one in run.rows),
    )
    for planted in places(made, errors):
        found[hit(planted, gap(made, planted))] += 1
    return found


def main(count: int, errors: int) -> None:
    """Write what the numeric gap says of so many cases."""
    said: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for place, case in enumerate(cases(count), start=1):
            found = judged(case, Path(folder) / str(case.seed), errors)
            said.setdefault(f"{case.kind} {case.mode} {case.backend}", Counter()).update(found)
            if found["false"] or found["elsewhere"]:
                _line(str(case), found)
            if place % 20 == 0:
                _line(f"all of {place}", sum(said.values(), Counter[str]()))
    _line("", {column: column for column in COLUMNS})
    for name in sorted(said):
        _line(name, said[name])
    _line("all", sum(said.values(), Counter[str]()))


def _line(name: str, found: Mapping[str, object]) -> None:
    cells = (f"{found[column]!s:>9}" for column in COLUMNS)
    sys.stdout.write(f"{name:46}{' '.join(cells)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*(int(word) for word in sys.argv[1:3] or ("60",)), *((3,) if len(sys.argv) < 3 else ()))
