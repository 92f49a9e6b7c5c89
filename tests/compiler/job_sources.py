"""User code for compiles in a worker, good and bad; lines that tests expect are marked."""

# ruff: noqa: T201 - the code of users prints

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x))  # line: wrong_input

    def scaled(self, x: torch.Tensor, *, by: torch.Tensor) -> torch.Tensor:
        return self.fc(x) * by


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:  # line: untraceable
            return x + 1
        return x - 1


class Products(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.mm(a, b) + b)


class Fixed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, 4) + 1


INPUTS = (torch.ones(2, 4),)


def good():
    return Net().eval(), INPUTS


def products():
    return Products(), (torch.ones(3, 3), torch.ones(3, 3))


def every_form():
    print("in the company of ETScope:", "inspector" in sys.modules)
    net = Net().eval()
    return {
        "module": net,
        "inputs": torch.ones(2, 4),
        "methods": {
            "scaled": (net.scaled, INPUTS, {"by": torch.ones(1)}),
            "exported": torch.export.export(net, INPUTS, strict=False),
        },
        "constant_methods": {"vocabulary": 32000},
    }


def dynamic():
    rows = torch.export.Dim("rows", min=2, max=8)
    return Net().eval(), INPUTS, None, {"x": {0: rows}}


def training():
    return Net(), INPUTS


def training_alike():
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.0)), INPUTS


def untraceable():
    return Branching().eval(), INPUTS


def wrong_input():
    return Net().eval(), (torch.ones(2, 5),)


def too_many_inputs():  # line: too_many_inputs
    return Net().eval(), (torch.ones(2, 4), torch.ones(2, 4))


def not_dynamic():
    rows = torch.export.Dim("rows", min=2, max=8)
    return Fixed().eval(), INPUTS, None, {"x": {0: rows}}


def raises():
    raise ValueError("deliberate: no weights")  # line: raises


def raises_at_length():
    raise ValueError("long " * 1000)  # line: raises_at_length


def prints():
    print("printed by python")
    os.write(1, b"printed by a descriptor\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    sys.stderr.write("printed to stderr")
    return Net().eval(), INPUTS


def floods():
    for number in range(30_000):
        print("line", number)
    return Net().eval(), INPUTS


def warns():
    warnings.warn("careful with these weights", stacklevel=1)  # line: warns
    return Net().eval(), INPUTS


def never():
    print("begun", flush=True)
    while True:
        pass


def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("begun", flush=True)
    while True:
        time.sleep(0.05)


def leaves_a_thread():
    threading.Thread(target=lambda: time.sleep(600)).start()
    return Net().eval(), INPUTS


def leaves_a_child():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("child", child.pid, flush=True)
    return Net().eval(), INPUTS


def ends_the_process():
    os._exit(3)


def asks_to_exit():
    sys.exit("bye")  # line: asks_to_exit


def reads_input():
    return input()  # line: reads_input


def crashes():
    ctypes.string_at(0)  # line: crashes


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def eats_memory():
    raise MemoryError  # line: eats_memory


def closes_everything():
    os.closerange(3, 256)
    return Net().eval(), INPUTS


def returns_nothing():  # line: returns_nothing
    return None


def returns_a_module():
    return Net().eval()


def returns_a_class():
    return Net, INPUTS


def returns_no_inputs():
    return {"module": Net().eval()}


def needs_arguments(width):
    return Net().eval(), (torch.ones(2, width),)


class Sorted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(x).values + 1


def sorts():
    return Sorted(), INPUTS


def forks_and_leaves():
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    return Net().eval(), INPUTS


def forks_and_raises():
    child = os.fork()
    if child == 0:
        raise ValueError("in the copy")
    os.waitpid(child, 0)
    return Net().eval(), INPUTS


def warns_in_a_fork():
    child = os.fork()
    if child == 0:
        warnings.warn("careful in the copy", stacklevel=1)
        os._exit(7)
    print("ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return Net().eval(), INPUTS


class UnshowableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def unshowable():
    raise UnshowableError  # line: unshowable


class Unknown(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.linalg.qr(x)[0]  # line: two_unknown_operators
        return first.sum() + torch.randn_like(x).sum()  # line: second_unknown


def two_unknown_operators():
    return Unknown().eval(), INPUTS


def without_a_bound():  # line: without_a_bound
    return torch.nn.Linear(4, 4).eval(), INPUTS, None, {"input": {0: torch.export.Dim("n")}}


def beyond_all_bounds():  # line: beyond_all_bounds
    rows = torch.export.Dim("rows", max=2**40)
    return torch.nn.Linear(4, 4).eval(), INPUTS, None, {"input": {0: rows}}


class Halves(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def partly_training():
    net = Halves().eval()
    net.second.train()
    return net, INPUTS


def scripted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(torch.nn.ReLU()), INPUTS


NUMBER = 3
