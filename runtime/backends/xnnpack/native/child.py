"""The child process in which the real kernels run; it imports the standard library only.

It is started as a script with the descriptor of a socket, reads JSON requests from it, and exits
when the socket is closed. The parent sends files that both map as shared memory. A kernel that
crashes on a damaged payload crashes this process.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import json
import mmap
import os
import socket
import struct
import sys
import threading
import time
from typing import Any

LIBRARY = "libexecutorch_backend_xnnpack.so"
THREADS = "libexecutorch_threadpool.so"
INVALID = 0xFFFFFFFF  # XNN_INVALID_VALUE_ID
_OK = 0
_NO_MEMORY = _TOO_SMALL = 6
NO_MEMORY = "out of memory"
MAX_DIMS = 6  # XNN_MAX_TENSOR_DIMS
_STATUS: tuple[str, ...] = (
    "success",
    "uninitialized",
    "invalid parameter",
    "invalid state",
    "unsupported parameter",
    "unsupported hardware",
    NO_MEMORY,
    "reallocation required",
    "deprecated",
)


class External(c.Structure):
    """An argument of a runtime: its id and address."""

    _fields_ = (("id", c.c_uint32), ("data", c.c_void_p))


_SIZES = c.POINTER(c.c_size_t)
_LETTERS: dict[str, Any] = {
    "p": c.c_void_p,
    "e": c.c_int,
    "u": c.c_uint32,
    "v": c.c_uint32,
    "z": c.c_size_t,
    "i": c.c_int32,
    "f": c.c_float,
    "Z": _SIZES,
    "F": c.c_void_p,
    "D": c.c_void_p,
}
# Arguments after the subgraph, one letter each as in _LETTERS: v value id, F two floats, D two
# doubles, Z sizes.
NODES = {
    "xnn_define_unary": "eFvvu",
    "xnn_define_binary": "eDvvvu",
    "xnn_define_convert": "vvu",
    "xnn_define_copy": "vvu",
    "xnn_define_softmax": "vvu",
    "xnn_define_exp": "vvu",
    "xnn_define_tanh": "vvu",
    "xnn_define_prelu": "vvvu",
    "xnn_define_batch_matrix_multiply": "vvvu",
    "xnn_define_fully_connected": "ffvvvvu",
    "xnn_define_convolution_2d": "uuuuuuuuuuuzzffvvvvu",
    "xnn_define_depthwise_convolution_2d": "uuuuuuuuuuuzffvvvvu",
    "xnn_define_deconvolution_2d": "uuuuuuuuuuuuuzzffvvvvu",
    "xnn_define_average_pooling_2d": "uuuuuuuuffvvu",
    "xnn_define_max_pooling_2d": "uuuuuuuuuuffvvu",
    "xnn_define_argmax_pooling_2d": "uuuuuuvvvu",
    "xnn_define_global_average_pooling_2d": "ffvvu",
    "xnn_define_static_reshape": "zZvvu",
    "xnn_define_static_transpose": "zZvvu",
    "xnn_define_static_slice": "zZZvvu",
    "xnn_define_static_constant_pad": "ZZfvvu",
    "xnn_define_static_resize_bilinear_2d": "zzvvu",
    "xnn_define_concatenate2": "ivvvu",
    "xnn_define_concatenate3": "ivvvvu",
    "xnn_define_concatenate4": "ivvvvvu",
    "xnn_define_concatenate5": "ivvvvvvu",
}
_VALUES = {
    "xnn_define_tensor_value": "pezZpuup",
    "xnn_define_quantized_tensor_value": "peifzZpuup",
    "xnn_define_channelwise_quantized_tensor_value_v2": "peipzzZpuup",
    "xnn_define_blockwise_quantized_tensor_value": "peipzzzZpuup",
    "xnn_define_dynamically_quantized_tensor_value": "pezzZuup",
}
_RUNTIME = {
    "xnn_initialize": "p",
    "xnn_create_subgraph": "uup",
    "xnn_delete_subgraph": "p",
    "xnn_create_workspace": "p",
    "xnn_create_runtime_v4": "ppppup",
    "xnn_reshape_external_value": "puzZ",
    "xnn_get_external_value_shape": "pupZ",
    "xnn_reshape_runtime": "p",
    "xnn_setup_runtime_v2": "pzp",
    "xnn_invoke_runtime": "p",
    "xnn_get_runtime_profiling_info": "pezpp",
    "xnn_delete_runtime": "p",
}


class LibraryError(Exception):
    """A call that the library refused."""


class Library:
    """The two libraries, their functions declared."""

    def __init__(self, folder: str) -> None:
        """Open the libraries of a folder."""
        mode = os.RTLD_NOW | os.RTLD_LOCAL
        self.kernels: Any = c.CDLL(os.path.join(folder, LIBRARY), mode=mode)
        self._threads: Any = c.CDLL(os.path.join(folder, THREADS), mode=mode)
        for name, letters in {**_VALUES, **_RUNTIME}.items():
            self._declare(name, letters)
        for name, letters in NODES.items():
            self._declare(name, "p" + letters)
        self.call("xnn_initialize", None)
        self.workspace = c.c_void_p()
        self.call("xnn_create_workspace", c.byref(self.workspace))
        self.pool: Any = None

    def _declare(self, name: str, letters: str) -> None:
        function = getattr(self.kernels, name)
        function.argtypes = [_LETTERS[letter] for letter in letters]
        function.restype = c.c_int

    def threads(self, count: int) -> None:
        """Create a thread pool; a single thread needs none."""
        create = self._threads.pthreadpool_create
        create.argtypes, create.restype = [c.c_size_t], c.c_void_p
        self.pool = create(count) if count != 1 else None

    def call(self, name: str, *args: Any) -> None:  # noqa: ANN401 - arguments of C
        """Call a function.

        Raises: LibraryError with the name of its status
        """
        status = int(getattr(self.kernels, name)(*args))
        if status != _OK:
            raise LibraryError(KernelModel.status(name, status))

    def build(self) -> str:
        """Return the identifier of the kernels, empty if the library has none."""
        try:
            size = self.kernels.xnn_experimental_get_build_identifier_size
            data = self.kernels.xnn_experimental_get_build_identifier_data
        except AttributeError:
            return ""
        size.restype, data.restype = c.c_size_t, c.c_void_p
        return c.string_at(data(), size()).hex()


class KernelModel:
    """One runtime: defined, reshaped, set up and invoked."""

    def __init__(self, library: Library, regions: dict[int, Any], question: dict[str, Any]) -> None:
        """Create the runtime.

        Raises: LibraryError; `node` is then the index of the node
        """
        self.library = library
        self._regions = regions
        self._lost = _OK
        self._half_planned = False
        self._times: Any = None
        self._needed = c.c_size_t()
        self._kept: list[Any] = []
        self.node: int | None = None
        self._ids: dict[int, int] = {INVALID: INVALID}
        self._runtime = c.c_void_p()
        graph = c.c_void_p()
        library.call("xnn_create_subgraph", question["externs"], 0, c.byref(graph))
        try:
            for value in question["values"]:
                self._value(graph, *value)
            for node, name, args in question["nodes"]:
                self.node = node
                self._define(graph, name, args)
            self.node = None
            flags = question["flags"]
            library.call(
                "xnn_create_runtime_v4",
                graph,
                None,
                library.workspace,
                library.pool,
                flags,
                c.byref(self._runtime),
            )
        finally:
            library.call("xnn_delete_subgraph", graph)

    def _address(self, place: list[int] | None) -> int | None:
        """Return the address of a place; region 0 is all memory, for callers in this process."""
        if place is None:
            return None
        return (address(self._regions[place[0]]) if place[0] else 0) + place[1]

    def _value(self, graph: Any, ident: int, name: str, args: list[Any]) -> None:  # noqa: ANN401
        """Define a value: places in memory are lists of region and offset, sizes lists in Z."""
        created = c.c_uint32(INVALID)
        given: list[Any] = [graph]
        for letter, arg in zip(_VALUES[name][1:-1], args, strict=True):
            given.append(self._sizes(arg) if letter == "Z" else arg)
            if letter == "p":
                given[-1] = self._address(arg)
        self.library.call(name, *given, c.byref(created))
        self._ids[ident] = created.value

    def _define(self, graph: Any, name: str, args: list[Any]) -> None:  # noqa: ANN401
        given: list[Any] = [graph]
        for letter, arg in zip(NODES[name], args, strict=True):
            given.append(self._argument(letter, arg))
        self.library.call(name, *given)

    def _argument(self, letter: str, arg: Any) -> Any:  # noqa: ANN401
        if letter == "v":
            return self._ids[arg]
        if letter == "Z":
            return self._sizes(arg)
        if letter in "FD" and arg is not None:
            kind = c.c_float if letter == "F" else c.c_double
            floats = (kind * 2)(*arg)
            self._kept.append(floats)
            return c.addressof(floats)
        return arg

    def _sizes(self, sizes: list[int]) -> Any:  # noqa: ANN401
        created = (c.c_size_t * max(1, len(sizes)))(*sizes)
        self._kept.append(created)
        return created

    def shape(self, inputs: list[tuple[int, list[int]]], outputs: list[int]) -> list[list[int]]:
        """Set the shapes of the inputs and return those of the outputs."""
        for ident, sizes in inputs:
            self.library.call(
                "xnn_reshape_external_value", self._runtime, ident, len(sizes), self._sizes(sizes)
            )
        status = self.planned(self.library.kernels.xnn_reshape_runtime(self._runtime))
        if status != _OK:
            raise LibraryError(self.status("xnn_reshape_runtime", status))
        return [self._shape(ident) for ident in outputs]

    def planned(self, status: int) -> int:
        """Return the status of planning memory; after a failure the library succeeds without."""
        self._half_planned = self._half_planned or status != _OK
        if status == _NO_MEMORY:
            self._lost = status
        return self._lost or status

    def _shape(self, ident: int) -> list[int]:
        rank, sizes = c.c_size_t(), (c.c_size_t * MAX_DIMS)()
        self.library.call(
            "xnn_get_external_value_shape", self._runtime, ident, c.byref(rank), sizes
        )
        return list(sizes[: rank.value])

    def setup(self, places: list[tuple[int, list[int]]]) -> None:
        """Set the addresses of inputs and outputs."""
        created = (External * max(1, len(places)))(
            *(External(ident, self._address(place)) for ident, place in places)
        )
        self.library.call("xnn_setup_runtime_v2", self._runtime, len(places), created)

    @property
    def handle(self) -> Any:  # noqa: ANN401 - a pointer
        """Return the pointer to the runtime."""
        return self._runtime

    @staticmethod
    def status(name: str, status: int) -> str:
        """Return the sentence of a status other than success."""
        known = 0 <= status < len(_STATUS)
        return f"{name}: {_STATUS[status] if known else f'status {status}'}"

    def invoke(self) -> tuple[int, int]:
        """Run; return start and end in nanoseconds of the monotonic clock."""
        start = time.perf_counter_ns()
        self.library.call("xnn_invoke_runtime", self._runtime)
        return start, time.perf_counter_ns()

    def times(self) -> list[int]:
        """Return microseconds of each operator of the last run."""
        if self._times is None:
            self._times = (c.c_uint64 * (len(self._info(2)) // 8))()
        times = self._times
        status = self.library.kernels.xnn_get_runtime_profiling_info(
            self._runtime, 2, c.sizeof(times), c.byref(times), c.byref(self._needed)
        )
        return list(times) if status == _OK else []

    def names(self) -> list[str]:
        """Return the name of each operator, in the order of their times."""
        return [one.decode("utf-8", "replace") for one in self._info(1).split(b"\0")]

    def _info(self, key: int) -> bytes:
        info = self.library.kernels.xnn_get_runtime_profiling_info
        needed = c.c_size_t()
        status = info(self._runtime, key, 0, None, c.byref(needed))
        if status not in (_OK, _TOO_SMALL):
            raise LibraryError(f"xnn_get_runtime_profiling_info: {_STATUS[status]}")
        buffer = c.create_string_buffer(max(1, needed.value))
        self.library.call(
            "xnn_get_runtime_profiling_info",
            self._runtime,
            key,
            needed.value,
            buffer,
            c.byref(needed),
        )
        return buffer.raw[: needed.value]

    def close(self) -> None:
        """Delete the runtime, unless shapes were refused: the library then frees memory twice."""
        if self._runtime and not self._half_planned:
            self.library.call("xnn_delete_runtime", self._runtime)


def address(region: mmap.mmap) -> int:
    """Return the address of a mapped file."""
    return c.addressof(c.c_char.from_buffer(region))


def receive(link: socket.socket) -> tuple[dict[str, Any], int | None] | None:
    """Return a request and the file descriptor sent with it, None if the socket was closed."""
    head, descriptors, _, _ = socket.recv_fds(link, 4, 1)
    while len(head) < 4:
        more = link.recv(4 - len(head)) if head else b""
        if not more:
            return None
        head += more
    (size,) = struct.unpack("<I", head)
    data = bytearray()
    while len(data) < size:
        more = link.recv(min(size - len(data), 1 << 20))
        if not more:
            return None
        data += more
    return json.loads(data), descriptors[0] if descriptors else None


class Server:
    """Handles requests to a library.

    Attributes:
        regions: shared memory, by id
    """

    def __init__(self) -> None:
        """Create a server without a library."""
        self.regions: dict[int, mmap.mmap] = {}
        self._library: Library | None = None
        self._models: dict[int, KernelModel] = {}

    def serve(self, link: socket.socket) -> None:
        """Handle requests until the socket is closed."""
        while True:
            received = receive(link)
            if received is None:
                return
            question, descriptor = received
            answer = self.answer(question.pop("verb"), question, descriptor)
            data = json.dumps(answer).encode()
            link.sendall(struct.pack("<I", len(data)) + data)

    def answer(self, verb: str, question: dict[str, Any], file: int | None) -> dict[str, Any]:
        """Return the reply to a request; an error of the library is a reply too."""
        try:
            return getattr(self, f"do_{verb}")(question, file) or {}
        except (LibraryError, OSError, AttributeError, MemoryError) as error:
            return {"refused": str(error) or type(error).__name__}

    def model(self, handle: int) -> KernelModel:
        """Return a runtime."""
        return self._models[handle]

    def do_hello(self, question: dict[str, Any], _file: int | None) -> dict[str, Any]:
        """Open the library."""
        self._library = Library(question["folder"])
        self._library.threads(question["threads"])
        return {"build": self._library.build()}

    def do_region(self, question: dict[str, Any], file: int | None) -> None:
        """Map a file that is shared."""
        assert file is not None
        with contextlib.closing(os.fdopen(file, "r+b")) as opened:
            self.regions[question["id"]] = mmap.mmap(opened.fileno(), question["size"])

    def do_create(self, question: dict[str, Any], _file: int | None) -> dict[str, Any]:
        """Create a runtime; an error names the node."""
        assert self._library is not None
        model = KernelModel.__new__(KernelModel)
        try:
            model.__init__(self._library, self.regions, question)
        except LibraryError as error:
            return {"refused": str(error), "node": model.node}
        self._models[question["handle"]] = model
        return {}

    def do_shape(self, question: dict[str, Any], _file: int | None) -> dict[str, Any]:
        """Set the shapes of the inputs."""
        model = self._models[question["handle"]]
        return {"shapes": model.shape(question["inputs"], question["outputs"])}

    def do_setup(self, question: dict[str, Any], _file: int | None) -> None:
        """Set the addresses of the arguments."""
        self._models[question["handle"]].setup(question["places"])

    def do_invoke(self, question: dict[str, Any], _file: int | None) -> dict[str, Any]:
        """Run, with the times of the operators if requested."""
        model = self._models[question["handle"]]
        start, end = model.invoke()
        answer: dict[str, Any] = {"start": start, "end": end}
        if question.get("profile"):
            answer["times"] = model.times()
        return answer

    def do_names(self, question: dict[str, Any], _file: int | None) -> dict[str, Any]:
        """Return the names of the operators of a runtime."""
        return {"names": self._models[question["handle"]].names()}

    def do_delete(self, question: dict[str, Any], _file: int | None) -> None:
        """Free runtimes and mapped files."""
        for handle in question["handles"]:
            model = self._models.pop(handle, None)
            if model is not None:
                model.close()
        for region in question["regions"]:
            self.regions.pop(region, None)


def leave_with_parent(every: float = 1.0) -> None:
    """Exit when the parent process has ended, even during a library call.

    Args:
        every: seconds between two checks
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def main() -> int:
    """Serve the socket of the given descriptor."""
    leave_with_parent()
    Server().serve(socket.socket(fileno=int(sys.argv[1])))
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)  # without waiting for the threads of the library
