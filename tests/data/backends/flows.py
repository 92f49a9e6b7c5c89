"""Writes programs of flows without a partitioner: python flows.py FLOW NETWORK [int8], with the stock package.

FLOW is cortexm or cadence. Cortex-M needs tosa-tools 2026.5.0. Each NAME.pte has a NAME.pt: [inputs, outputs of
the graph after the vendor's passes, run by the vendor's reference operators]. Networks are in nets.py.
"""

from __future__ import annotations

import re
import sys
import tempfile
import typing
import zipfile
from pathlib import Path

import torch
import typing_extensions
from nets import network

HERE = Path(__file__).resolve().parent


def cortexm(module, inputs, option: str):
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.exir import to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    inputs = tuple(
        one.to(memory_format=torch.channels_last) if one.dim() == 4 else one for one in inputs
    )
    module = module.to(memory_format=torch.channels_last)
    program = torch.export.export(module, inputs, strict=True)
    if option == "int8":
        prepared = prepare_pt2e(program.module(check_guards=False), CortexMQuantizer())
        prepared(*inputs)
        program = torch.export.export(convert_pt2e(prepared), inputs, strict=True)
    edge = to_edge(program, compile_config=cortex_m_edge_compile_config(), generate_etrecord=True)
    edge._edge_programs["forward"] = CortexMPassManager(edge.exported_program()).transform()
    expected = edge.exported_program().module(check_guards=False)(*inputs)
    built = edge.to_executorch()
    return built.buffer, inputs, expected, built.get_etrecord()


def cadence(module, inputs, option: str):
    typing.override = getattr(typing, "override", typing_extensions.override)
    kept = torch.library.Library("cadence", "FRAGMENT")
    kept.define(  # 1.5.1 has an implementation without a schema
        "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)"
        " -> Tensor"
    )
    from executorch.backends.cadence.aot import compiler, ops_registrations, ref_implementations

    del ops_registrations, ref_implementations

    program = (
        compiler.quantize_pt2(module, inputs)
        if option == "int8"
        else torch.export.export(module, inputs, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        built = compiler._lower_ep_to_cadence_gen_etrecord(program, output_dir=folder)
        record = Path(folder, "etrecord.bin").read_bytes()
    lowered = compiler._lower_ep_to_cadence(program).exported_program()
    return built.buffer, inputs, lowered.module(check_guards=False)(*inputs), record


def scrubbed(path: Path) -> None:
    """Make the file names in stack traces relative to tests/data and to site-packages."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            data = data.replace(f"{HERE.parent}/".encode(), b"")
            file.writestr(name, re.sub(rb"/[-\w./]*/site-\w+/", b"", data))


def main() -> None:
    flow, name, option = (*sys.argv[1:], "")[:3]
    module, inputs = network(name)
    with torch.no_grad():
        program, inputs, expected, record = {"cortexm": cortexm, "cadence": cadence}[flow](
            module, inputs, option
        )
    target = HERE / "_".join(filter(None, (flow, name, option)))
    target.with_suffix(".pte").write_bytes(program)
    if record is not None and name == "m1":
        if isinstance(record, bytes):
            target.with_suffix(".etrecord").write_bytes(record)
        else:
            record.save(str(target.with_suffix(".etrecord")))
        scrubbed(target.with_suffix(".etrecord"))
    several = isinstance(expected, (tuple, list))
    torch.save([list(inputs), list(expected) if several else [expected]], target.with_suffix(".pt"))


main()
