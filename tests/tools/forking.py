"""The process that others are forked from; its text is run with ``python -c``.

Its arguments: the number of a socket, the first entry of `sys.path`, the modules to load, in JSON.
Takes requests on that socket: the arguments of a Python command and a connection with the
descriptors of its standard streams, answered with its process id and, at its end, its exit code.
"""

import array
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import types
import warnings
from typing import Any

sys.path[0] = sys.argv[2]


def serve(door: socket.socket) -> list[str] | None:
    """Fork a process for each request; return its arguments there, None here at the end."""
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
                    for open_one in (door, woken, wakes, *waiting.values()):
                        open_one.close()
                    return become(request, list(pieces[:3]), answer)
                for number in pieces[:3]:
                    os.close(number)
                waiting[pid] = answer


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


def become(request: dict[str, Any], streams: list[int], answer: socket.socket) -> list[str]:
    """Give this process the streams, folder and environment of a new one; return its arguments."""
    os.setsid()
    with answer:  # only now: whoever knows the number may end the group
        answer.sendall(b"%d\n" % os.getpid())
    for place, number in enumerate(streams):
        os.dup2(number, place)
        os.close(number)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    return request["command"]


def run(command: list[str]) -> None:
    """Do what ``python COMMAND…`` does."""
    while command[0] == "-W":
        warnings.simplefilter(command[1])
        command = command[2:]
    if command[0] == "-m":
        sys.path[0], sys.argv = os.getcwd(), command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    elif command[0] == "-c":
        sys.path[0], sys.argv = "", ["-c", *command[2:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(command[1], "<string>", "exec"), main.__dict__)
    else:
        sys.path[0], sys.argv = os.path.dirname(command[0]), command
        runpy.run_path(command[0], run_name="__main__")


def work(command: list[str]) -> None:
    """Do what a worker of the product does, whose modules are loaded."""
    sys.argv = command
    worker = sys.modules["inspector.worker.__main__"]
    worker.end(worker.main())


modules = json.loads(sys.argv[3])
for name in modules:
    importlib.import_module(name)
torch = importlib.import_module("torch")
torch.export.export(torch.nn.ReLU(), (torch.ones(1),))  # which imports half of torch
importlib.import_module("compiler.quantize.quiet_imports").import_quietly(
    "torchao.quantization.pt2e"
)
gc.freeze()
with socket.socket(fileno=int(sys.argv[1])) as at_the_door:
    asked = serve(at_the_door)
if asked is not None:
    (work if "inspector.worker.__main__" in modules else run)(asked)
