"""A runner as devices have it, on the stock runtime of the installed wheel, with its flags.

    python runner.py --model_path=m.pte --inputs=a.bin,b.bin --output_file=output \
        --num_executions=3 --warmup=1 --etdump_path=run.etdp --debug_output_path=values.debug

Inputs and outputs are raw tensors; what is printed is what ``executor_runner`` prints.
``--serve SOCKET`` imports everything once, and ``--server=SOCKET`` runs in a fork of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
import warnings
from pathlib import Path
from typing import Any

_DTYPES = {0: "uint8", 1: "int8", 3: "int32", 4: "int64", 6: "float32"}


def main(words: list[str]) -> int:
    """Run here, in a fork of a server, or be that server; return the exit code."""
    flags = _flags(words)
    if flags.serve:
        serve(flags.serve)
    if flags.server:
        return ask(flags.server, [one for one in words if not one.startswith("--server")])
    return run(flags)


def serve(path: str) -> None:
    """Answer requests, each in a process of its own, until it is ended."""
    _binding()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen()
    os.rename(f"{path}.new", path)
    while True:
        one, _ = listener.accept()
        data, (out,), _, _ = socket.recv_fds(one, 1 << 16, 1)
        words, folder = json.loads(data)
        pid = os.fork()
        if not pid:
            os.dup2(out, 1)
            os.chdir(folder)
            code = run(_flags(words))
            sys.stdout.flush()
            os._exit(code)
        os.close(out)
        one.send(bytes([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255]))
        one.close()


def ask(path: str, words: list[str]) -> int:
    """Run in a fork of a server; return its exit code."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(path)
        socket.send_fds(one, [json.dumps([words, os.getcwd()]).encode()], [1])
        return one.recv(1)[0]


def _binding() -> Any:
    warnings.simplefilter("ignore")
    from executorch.extension.pybindings import portable_lib

    return portable_lib


def run(flags: argparse.Namespace) -> int:
    """Run, write the outputs and the trace, and print the times."""
    traced = bool(flags.etdump_path) and not flags.without_tracing
    start = time.perf_counter()
    program = _binding()._load_program(
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


def _flags(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=lambda text: text.split(","), default=[])
    for name in ("model_path", "method_name", "output_file", "etdump_path", "debug_output_path"):
        parser.add_argument(f"--{name}", default="")
    for name in ("serve", "server"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--num_executions", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--without_tracing", action="store_true")
    return parser.parse_args(words)


def _read(meta: Any, at: int, path: str) -> Any:
    import torch

    info = meta.input_tensor_meta(at)
    data = bytearray(Path(path).read_bytes())
    return torch.frombuffer(data, dtype=getattr(torch, _DTYPES[info.dtype()])).reshape(
        tuple(info.sizes())
    )


def _once(method: Any, inputs: list[Any]) -> float:
    method.set_inputs(inputs)
    start = time.perf_counter()
    method.execute()
    return 1e3 * (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
