"""The process that workers of tests are forked from; its text is run with ``python -c``.

Takes requests on the socket whose number is its first argument: a connection with the descriptors
of a worker's standard streams, answered with its process id and, when it has ended, its status.
"""

import array
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys

sys.path[0] = sys.argv[2]


def serve(door: socket.socket) -> str | None:
    """Fork a worker for each request; return its kind in the worker, None here at the end."""
    waiting: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    woken.setblocking(False)
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as ready:
        ready.register(door, selectors.EVENT_READ)
        ready.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is woken:
                    woken.recv(4096)
                    report(waiting)
                    continue
                pieces = array.array("i")
                data, parts, _flags, _from = door.recvmsg(1 << 20, socket.CMSG_SPACE(4 * 4))
                if not data:
                    return None
                for _level, _kind, numbers in parts:
                    pieces.frombytes(numbers)
                request, answer = json.loads(data), socket.socket(fileno=pieces[3])
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for open_one in (door, woken, wakes, answer, *waiting.values()):
                        open_one.close()
                    return become(request, list(pieces[:3]))
                for number in pieces[:3]:
                    os.close(number)
                waiting[pid] = answer
                answer.sendall(b"%d\n" % pid)


def report(waiting: dict[int, socket.socket]) -> None:
    """Say of each worker that has ended how."""
    for pid in list(waiting):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            with waiting.pop(pid) as answer:
                try:
                    answer.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                except OSError:
                    continue  # whoever started it is gone


def become(request: dict[str, object], streams: list[int]) -> str:
    """Make this process what a new one with these streams would be; return its kind."""
    os.setsid()
    for place, number in enumerate(streams):
        os.dup2(number, place)
        os.close(number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = [request["worker"], request["kind"]]
    return request["kind"]


for name in ("exporter", "lowering", "compile_job", "executing", "gap_job", "bisect_job"):
    importlib.import_module(f"inspector.worker.{name}")
worker = importlib.import_module("inspector.worker.__main__")
torch = importlib.import_module("torch")
torch.export.export(torch.nn.ReLU(), (torch.ones(1),))  # which imports half of torch
importlib.import_module("compiler.quantize.quiet_imports").import_quietly(
    "torchao.quantization.pt2e"
)
gc.freeze()
with socket.socket(fileno=int(sys.argv[1])) as at_the_door:
    asked = serve(at_the_door)
if asked is not None:
    worker.end(worker.main())
