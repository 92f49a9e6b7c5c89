"""Programs around payloads of any backend, with their named data inside, beside or absent."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from schema import flat_tensor
from schema.flat_tensor import PlacedBlob as DataBlob
from schema.program import decode, encode
from schema.program import model as m
from tests.schema.payload_files import DATA, blob
from tests.schema.test_payload_backends import block, commands, interface, stream
from tests.schema.test_payload_mlx import chains, number, op, slots
from tests.schema.test_payload_mlx import m as mlx
from tests.schema.test_payload_mlx import payload as mlx_payload
from tests.schema.test_payload_vendor import ELF, NEUTRON, _two_nodes, neutron, qcir, qnn

BASE = DATA / "corpus/payloads/xnnpack.pte"
KEY = "0123456789abcdef" * 4


@dataclass(frozen=True)
class Family:
    """A payload with what belongs to it.

    Attributes:
        nodes: operations of the graph, without those of branches, None when the format holds none
    """

    label: str
    backend_id: str
    data: bytes
    specs: tuple[tuple[str, bytes], ...] = ()
    named: dict[str, bytes] = field(default_factory=dict)
    nodes: int | None = None

    def __str__(self) -> str:
        return self.label


def program_of(family: Family, *, inside: bool) -> bytes:
    """Return a program that delegates to the family's payload, named data in it if ``inside``."""
    program = decode(BASE.read_bytes())
    table, plan = program.table, program.plans[0]
    inline = m.BackendDelegateInlineData(memoryview(family.data))
    specs = tuple(m.CompileSpec(key, memoryview(value)) for key, value in family.specs)
    delegate = replace(
        plan.delegates[0],
        id=family.backend_id,
        processed=m.BackendDelegateDataReference(0, 0),
        compile_specs=specs,
    )
    plans = (replace(plan, delegates=(delegate, *plan.delegates[1:])), *program.plans[1:])
    named = family.named if inside else {}
    entries = tuple(m.NamedData(key, index) for index, key in enumerate(named))
    table = replace(
        table, execution_plan=plans, backend_delegate_data=(inline,), named_data=entries,
        segments=tuple(m.DataSegment(0, len(data)) for data in named.values()),
        constant_segment=None,
    )  # fmt: skip
    segments = tuple(memoryview(data) for data in named.values())
    return encode(replace(program, table=table, segments=segments))


def data_of(family: Family) -> bytes:
    """Return the named data as a file of its own."""
    blobs = [(key, DataBlob(memoryview(data), None)) for key, data in family.named.items()]
    return flat_tensor.encode(flat_tensor.pack(blobs))


def write(family: Family, folder: Path, *, inside: bool) -> list[Path]:
    """Write the program, and the data beside it when it is not inside."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "model.pte"]
    files[0].write_bytes(program_of(family, inside=inside))
    if not inside and family.named:
        files.append(folder / "model.ptd")
        files[1].write_bytes(data_of(family))
    return files


def _mlx() -> bytes:
    named = (mlx.NamedSlot("ab_w", mlx.SlotVariant(0)), mlx.NamedSlot("ab_x", mlx.SlotVariant(1)))
    main = (
        op("Addmm", mat1=1, mat2=0, out=3),
        op("If", cond=number(vid=0), then_chain_idx=1, else_chain_idx=2),
    )
    branches = ((op("Exp", x=3, out=2),), (op("Sin", x=3, out=2),))
    return mlx_payload(chains(
        main, *branches, num_constant_tensors=1, num_input_tensors=1, num_output_tensors=1,
        num_temp_tensors=1, num_values=1, input_map=slots(1), output_map=slots(2),
        named_slots=named,
        tensor_meta=tuple(mlx.MlxTensor((mlx.ShapeDim(2), mlx.ShapeDim(2)), 6) for _ in range(3)),
    ))  # fmt: skip


def _vela() -> bytes:
    tensors = interface((1, 1, 1, 3, 8, 8, 1, 0, 1))
    words = commands(0x2, 0x5, 0x10)
    return stream(
        block("weight_data", KEY.encode(), 1), block("cmd_data", words),
        block("inputs", tensors), block("outputs", tensors),
        block("scratch_size", struct.pack("<I", 1104)),
    )  # fmt: skip


@cache
def families() -> tuple[Family, ...]:
    """Return a payload of each kind that no recorded program holds."""
    openvino = (DATA / "openvino/2026.4.1_branches.blob").read_bytes()
    coreml = {name: (DATA / f"coreml/{name}.bin").read_bytes() for name in ("int4", "functions")}
    network = (DATA / "coreml/network.bin").read_bytes()
    reference = b'CMJR{"version": 1, "key": "coreml_id", "functionName": "decode"}'
    cpu, gpu = (("device", b"CPU"),), (("device", b"GPU"),)
    method = (("method_name", b"forward"),)
    aoti = {"forward_so_blob": ELF, "forward_weights_blob": bytes(range(200))}
    keys = {f"{KEY}_so_blob": ELF, f"{KEY}_weights_blob": b"weights!"}
    shared = (("platform-config", b"mt6989"), ("ExtractSharedBlobKey", b"blob"))
    return (
        Family("mlx", "MLXBackend", _mlx(), (), {"ab_w": bytes(16)}, 2),
        Family("vela external", "EthosUBackend", _vela(), (), {KEY: b"weights" * 9}, 3),
        Family("openvino 2026", "OpenvinoBackend", openvino, cpu, {}, 2),
        Family("openvino gpu", "OpenvinoBackend", b"\x01\x02" * 300, gpu),
        Family("coreml int4", "CoreMLBackend", coreml["int4"], (), {}, 5),
        Family("coreml functions", "CoreMLBackend", reference, (),
               {"coreml_id": coreml["functions"]}, 4),
        Family("coreml network", "CoreMLBackend", network, (), {}, 2),
        Family("qnn 1.2", "QnnBackend", qnn(b"binary" * 20, padded=True)),
        Family("qnn 0.6", "QnnBackend", qnn(b"binary" * 20, padded=False)),
        Family("qcir", "QnnBackend", qcir(_two_nodes(), area=b"abcdWEIGHTS!"), (), {}, 2),
        Family("neutron", "NeutronBackend", neutron(NEUTRON["1.1 version 1"], 1, 70, 33, 20)),
        Family("mediatek shared", "NeuropilotBackend", struct.pack("<BIII", 1, 1, 1, 4) + b"dla!",
               shared, {"blob": b"shared weights"}),
        Family("samsung", "EnnBackend", b"NNC" + bytes(range(256))),
        Family("aoti by method", "CudaBackend", b"", method, aoti),
        Family("aoti keys", "MetalBackend", "\n".join(keys).encode(), (), keys),
        Family("demo", "BackendWithCompilerDemo", blob("demo_addmul").data, (), {}, 1),
        Family("unknown", "SomebodysBackend", b"secret" * 50, (("k", b"v"),)),
        Family("empty", "SomebodysBackend", b""),
    )  # fmt: skip
