"""The part of the Android debug bridge that a phone speaks and we use, on the loopback address.

Source: Android's system/core/adb: protocol.txt (CNXN, OPEN, OKAY, WRTE, CLSE), SYNC.TXT (STAT,
SEND, RECV, DATA, DONE) and shell_protocol.h (packets of shell_v2).
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

_HEADER = struct.Struct("<4sIIIII")
_VERSION, _MOST = 0x01000001, 1 << 16
_BANNER = b"device::ro.product.name=paper;ro.product.model=Paper;ro.product.device=paper;"
_STDIN, _STDOUT, _EXIT, _CLOSE_STDIN = 0, 1, 3, 4
_SIDE = struct.Struct("<4sI")


class Daemon:
    """Serves one host after the other.

    Attributes:
        port: of the loopback address
        services: that were opened, as text
    """

    def __init__(self) -> None:
        """Listen."""
        self.services: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._hosts: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._serve)

    def unplug(self) -> None:
        """Close all connections."""
        for one in self._hosts:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._hosts.clear()

    def stop(self) -> None:
        """Listen no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.unplug()
        for thread in self._threads:
            thread.join(5)

    def _start(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                host, _ = self._listener.accept()
                self._hosts.append(host)
                self._start(self._host, host)

    def _host(self, host: socket.socket) -> None:
        lock = threading.Lock()
        streams: dict[int, _Stream] = {}

        def send(command: bytes, one: int, two: int, data: bytes = b"") -> None:
            number = int.from_bytes(command, "little")
            words = (command, one, two, len(data), sum(data) & 0xFFFFFFFF, number ^ 0xFFFFFFFF)
            with lock, contextlib.suppress(OSError):
                host.sendall(_HEADER.pack(*words) + data)

        with contextlib.suppress(OSError, struct.error), host.makefile("rb") as source:
            while header := source.read(_HEADER.size):
                command, one, two, size, _, _ = _HEADER.unpack(header)
                data = source.read(size)
                if command == b"CNXN":
                    send(b"CNXN", _VERSION, _MOST, _BANNER + b"features=shell_v2,cmd")
                elif command == b"OPEN":
                    service = data.rstrip(b"\0").decode()
                    self.services.append(service)
                    streams[one] = _Stream(one, send, service)
                elif two in streams:
                    streams[two].take(command, data)
        for stream in streams.values():
            stream.take(b"CLSE", b"")
        host.close()


class _Stream:
    """One service; its number is the host's, for both sides."""

    def __init__(self, number: int, send: Any, service: str) -> None:
        self._number, self._send = number, send
        self._given: queue.Queue[bytes] = queue.Queue()
        self._ready = threading.Semaphore(0)
        self._rest = b""
        self._open = True
        send(b"OKAY", number, number)
        kind, _, command = service.partition(":")
        work = self._sync if kind == "sync" else self._shell
        threading.Thread(target=self._work, args=(work, command), daemon=True).start()

    def take(self, command: bytes, data: bytes) -> None:
        """Handle a message of the host."""
        if command == b"WRTE":
            self._given.put(data)
            self._send(b"OKAY", self._number, self._number)
        elif command == b"OKAY":
            self._ready.release()
        elif command == b"CLSE":
            self._open = False
            self._given.put(b"")
            self._ready.release()

    def _work(self, work: Any, command: str) -> None:
        with contextlib.suppress(OSError, EOFError):
            work(command)
        self._send(b"CLSE", self._number, self._number)

    def _write(self, data: bytes) -> None:
        for at in range(0, len(data), _MOST):
            self._send(b"WRTE", self._number, self._number, data[at : at + _MOST])
            self._ready.acquire()
            if not self._open:
                raise EOFError

    def _read(self, size: int) -> bytes:
        while len(self._rest) < size:
            data = self._given.get()
            if not data:
                raise EOFError
            self._rest += data
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    # ---- shell_v2
    def _shell(self, command: str) -> None:
        process = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        threading.Thread(target=self._feed, args=(process,), daemon=True).start()
        assert process.stdout is not None
        try:
            while data := os.read(process.stdout.fileno(), 4096):
                self._write(struct.pack("<BI", _STDOUT, len(data)) + data)
            self._write(struct.pack("<BIB", _EXIT, 1, process.wait() & 255))
        finally:
            process.stdout.close()
            process.wait()

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with contextlib.suppress(EOFError, OSError), process.stdin:
            while True:
                kind, size = struct.unpack("<BI", self._read(5))
                data = self._read(size)
                if kind == _STDIN:
                    process.stdin.write(data)
                    process.stdin.flush()
                elif kind == _CLOSE_STDIN:
                    return

    # ---- sync
    def _sync(self, _command: str) -> None:
        while True:
            name, size = _SIDE.unpack(self._read(8))
            if name == b"QUIT":
                return
            path = self._read(size).decode()
            if name == b"STAT":
                found = Path(path).stat() if Path(path).exists() else None
                facts = (found.st_mode, found.st_size, 0) if found is not None else (0, 0, 0)
                self._write(b"STAT" + struct.pack("<III", *facts))
            elif name == b"SEND":
                self._receive(Path(path.rpartition(",")[0]))
            elif name == b"RECV":
                self._send_file(Path(path))

    def _receive(self, path: Path) -> None:
        pieces: list[bytes] = []
        while (head := _SIDE.unpack(self._read(8)))[0] == b"DATA":
            pieces.append(self._read(head[1]))
        try:
            path.write_bytes(b"".join(pieces))
        except OSError as error:
            self._fail(str(error))
        else:
            self._write(_SIDE.pack(b"OKAY", 0))

    def _send_file(self, path: Path) -> None:
        try:
            data = path.read_bytes()
        except OSError as error:
            self._fail(str(error))
            return
        for at in range(0, len(data), _MOST - 8):
            piece = data[at : at + _MOST - 8]
            self._write(_SIDE.pack(b"DATA", len(piece)) + piece)
        self._write(_SIDE.pack(b"DONE", 0))

    def _fail(self, text: str) -> None:
        self._write(_SIDE.pack(b"FAIL", len(text.encode())) + text.encode())
