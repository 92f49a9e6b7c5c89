"""A runner as devices have it, on the stock runtime of the installed wheel, with its flags.

    python runner.py --model_path=m.pte --inputs=a.bin,b.bin --output_file=output \
        --num_executions=3 --warmup=1 --etdump_path=run.etdp --debug_output_path=values.debug

Inputs and outputs are raw tensors; what is printed is what ``executor_runner`` prints.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
import torch  # noqa: E402
from executorch.extension.pybindings import portable_lib  # noqa: E402

_CODES = {0: torch.uint8, 1: torch.int8, 3: torch.int32, 4: torch.int64, 6: torch.float32}


def main() -> int:
    """Run, write the outputs and the trace, and print the times."""
    flags = _flags()
    if flags.hold:  # as long as the connection, and longer if it is not noticed
        Path(flags.hold).write_text(str(os.getpid()))
        time.sleep(60)
    traced = bool(flags.etdump_path) and not flags.without_tracing
    start = time.perf_counter()
    program = portable_lib._load_program(
        flags.model_path,
        enable_etdump=traced,
        debug_buffer_size=1 << 24 if flags.debug_output_path else 0,
    )
    method = program.load_method(flags.method_name or program.method_meta("forward").name())
    inputs = [_read(method.method_meta(), at, path) for at, path in enumerate(flags.inputs)]
    say(f"Model loaded in {1e3 * (time.perf_counter() - start):f} ms.")
    times = [_once(method, inputs) for _ in range(flags.warmup + flags.num_executions)]
    times = times[flags.warmup :]
    for at, spent in enumerate(times, 1):
        say(f"Iteration {at} of {len(times)}: {spent:f} ms")
    say(f"Model executed successfully {len(times)} time(s) in {sum(times):f} ms.")
    for at, value in enumerate(method.get_outputs()):
        if flags.output_file:
            Path(f"{flags.output_file}-{at}.bin").write_bytes(value.contiguous().numpy().tobytes())
    if traced:
        buffer = [flags.debug_output_path] if flags.debug_output_path else []
        program.write_etdump_result_to_file(flags.etdump_path, *buffer)
    return 0


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_path", required=True)
    parser.add_argument("--inputs", type=lambda text: text.split(","), default=[])
    for name in ("method_name", "output_file", "etdump_path", "debug_output_path", "hold"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--num_executions", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--without_tracing", action="store_true")
    return parser.parse_args()


def _read(meta: Any, at: int, path: str) -> torch.Tensor:
    info = meta.input_tensor_meta(at)
    data = bytearray(Path(path).read_bytes())
    return torch.frombuffer(data, dtype=_CODES[info.dtype()]).reshape(tuple(info.sizes()))


def _once(method: Any, inputs: list[torch.Tensor]) -> float:
    method.set_inputs(inputs)
    start = time.perf_counter()
    method.execute()
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
