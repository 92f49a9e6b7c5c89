"""Make Core ML payloads of small models: python -m tests.tools.make_coreml_payloads OUT_DIR.

coremltools makes the models (programs, compressed weights, several functions, a neural network);
the flattening of stock ExecuTorch makes the payloads of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import coremltools as ct
import coremltools.optimize.coreml as compress
import numpy as np
from coremltools.converters.mil import Builder as mb  # noqa: N813 - the name coremltools documents
from coremltools.converters.mil.mil import types
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from executorch.backends.apple.coreml import executorchcoreml

SIZE = 16
WEIGHT = np.random.default_rng(7).random((SIZE, SIZE)).astype(np.float32)
CONFIG = compress.OptimizationConfig


def main() -> int:
    """Write every payload into the folder named on the command line."""
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, save in models().items():
            folder = Path(scratch) / name
            folder.mkdir()
            save(folder)
            metadata = {"identifier": f"executorch_{name}", "inputNames": ["x"]}
            metadata |= {"outputNames": ["y"]}
            (folder / "metadata.json").write_text(json.dumps(metadata))
            data = executorchcoreml.flatten_directory_contents(str(folder))
            (out / f"{name}.bin").write_bytes(data)
            print(name, len(data))  # noqa: T201
    return 0


def models() -> dict[str, Any]:
    """Return what writes each model into a folder."""
    plain = linear(ct.target.iOS17)
    blocks = compress.OpLinearQuantizerConfig(
        mode="linear_symmetric", dtype="int4", granularity="per_block", block_size=8,
        weight_threshold=0,
    )  # fmt: skip
    eight = compress.OpLinearQuantizerConfig(mode="linear_symmetric", weight_threshold=0)
    table = compress.OpPalettizerConfig(nbits=4, mode="kmeans", weight_threshold=0)
    half = compress.OpMagnitudePrunerConfig(target_sparsity=0.5, weight_threshold=0)
    made = {
        "linear": plain,
        "int8": compress.linear_quantize_weights(plain, CONFIG(eight)),
        "palette": compress.palettize_weights(plain, CONFIG(table)),
        "sparse": compress.prune_weights(plain, CONFIG(half)),
        "int4": compress.linear_quantize_weights(linear(ct.target.iOS18), CONFIG(blocks)),
        "branches": branches(),
        "state": state(),
    }
    savers: dict[str, Any] = {
        name: lambda folder, model=model: model.save(str(folder / "model.mlpackage"))
        for name, model in made.items()
    }
    return savers | {"functions": functions, "network": network}


def linear(target: Any, weight: Any = WEIGHT) -> Any:
    @mb.program(input_specs=[mb.TensorSpec((1, SIZE))], opset_version=target)
    def program(x: Any) -> Any:
        return mb.relu(x=mb.linear(x=x, weight=weight, name="fc"), name="y")

    return converted(program, target)


def converted(program: Any, target: Any) -> Any:
    return ct.convert(
        program, convert_to="mlprogram", minimum_deployment_target=target, skip_model_load=True
    )


def branches() -> Any:
    bias = np.arange(SIZE, dtype=np.float32)

    @mb.program(input_specs=[mb.TensorSpec((1,)), mb.TensorSpec((SIZE,))])
    def program(choice: Any, x: Any) -> Any:
        return mb.cond(
            pred=mb.greater(x=mb.squeeze(x=choice), y=0.0),
            _true_fn=lambda: mb.add(x=x, y=bias),
            _false_fn=lambda: mb.mul(x=x, y=bias + 1),
            name="y",
        )

    return converted(program, ct.target.iOS16)


def state() -> Any:
    specs = [mb.TensorSpec((2,)), mb.StateTensorSpec((2,), dtype=types.fp16)]

    @mb.program(input_specs=specs, opset_version=ct.target.iOS18)
    def program(x: Any, total: Any) -> Any:
        value = mb.add(x=mb.cast(x=x, dtype="fp16"), y=mb.read_state(input=total))
        mb.coreml_update_state(state=total, value=value)
        return mb.cast(x=value, dtype="fp32", name="y")

    return converted(program, ct.target.iOS18)


def functions(folder: Path) -> None:
    """Write a model whose two functions name their weights alike; only the bias is shared."""
    wanted = ct.utils.MultiFunctionDescriptor()
    with tempfile.TemporaryDirectory() as scratch:
        for name, scale in (("decode", 1), ("prefill", 2)):
            path = f"{scratch}/{name}.mlpackage"
            linear(ct.target.iOS18, WEIGHT * scale).save(path)
            wanted.add_function(path, "main", name)
        wanted.default_function_name = "prefill"
        ct.utils.save_multifunction(wanted, str(folder / "model.mlpackage"))


def network(folder: Path) -> None:
    builder = NeuralNetworkBuilder([("x", datatypes.Array(SIZE))], [("y", datatypes.Array(SIZE))])
    builder.add_inner_product("fc", WEIGHT, WEIGHT[0], SIZE, SIZE, True, "x", "h")
    builder.add_activation("act", "RELU", "h", "y")
    ct.utils.save_spec(builder.spec, str(folder / "model.mlmodel"))


if __name__ == "__main__":
    raise SystemExit(main())
