"""What a screen reader knows of the window: the tree of objects on the accessibility bus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from jeepney import DBusAddress, HeaderFields, MatchRule, Message, MessageType, new_method_call
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import DBusConnection, open_dbus_connection

_ACCESSIBLE = "org.a11y.atspi.Accessible"
_COMPONENT = "org.a11y.atspi.Component"
_EVENT = "org.a11y.atspi.Event.Object"
_REGISTRY = ("org.a11y.atspi.Registry", "/org/a11y/atspi/registry")
_PROPERTIES = "org.freedesktop.DBus.Properties"
_ROOT = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_SCREEN = 0  # coordinates are those of the screen
_TIMEOUT = 30.0  # seconds for one answer of a busy program
_LARGE = 200  # children from which on an object is a table of data, not of controls

Reference = tuple[str, str]


class State(IntEnum):
    """Bits of the set of states that are used here, by their number in AT-SPI."""

    CHECKED = 4
    ENABLED = 8
    FOCUSABLE = 11
    FOCUSED = 12
    SELECTED = 23
    SHOWING = 25


@dataclass
class Item:
    """One object on the bus.

    Attributes:
        reference: name and path on the bus
        role: as the bus names it
        name: what a screen reader reads first
        about: its description
        states: bits
        count: children, also those that were not read
        parent: None for the window
        children: those that were read
    """

    reference: Reference
    role: str
    name: str
    about: str
    states: int
    count: int = 0
    parent: Item | None = None
    children: list[Item] = field(default_factory=list)

    def has(self, *states: State) -> bool:
        """Return whether the object has all of these states."""
        return all(self.states >> state & 1 for state in states)

    def walk(self) -> Iterator[Item]:
        """Iterate over the object and all below it, in their order."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def place(self) -> str:
        """Return where the object is, for a message."""
        names: list[str] = []
        at: Item | None = self
        while at is not None:
            if at.name.strip(". "):
                names.append(at.name)
            at = at.parent
        around = names[1:4] if self.name.strip(". ") else names[:3]
        return " < ".join((f"{self.role} '{self.name}'", *around))


class ScreenReader:
    """Reads the objects of the one program on a desktop, and takes its events.

    Attributes:
        announced: what the program had read out, in order
    """

    def __init__(self, session_bus: str) -> None:
        session = open_dbus_connection(bus=session_bus)
        try:
            answer = _ask(session, ("org.a11y.Bus", "/org/a11y/bus"), "org.a11y.Bus", "GetAddress")
        finally:
            session.close()
        self._bus: DBusConnection = open_dbus_connection(bus=str(answer[0]))
        self._answers: dict[int, tuple[Any, ...]] = {}
        self._focus: Reference | None = None
        self.announced: list[str] = []
        self._bus.send_and_get_reply(
            message_bus.AddMatch(MatchRule(type="signal", interface=_EVENT))
        )
        for event in ("object:state-changed:focused", "object:announcement"):
            _ask(self._bus, _REGISTRY, _REGISTRY[0], "RegisterEvent", event)

    def close(self) -> None:
        """Leave the bus."""
        self._bus.close()

    def windows(self, *, hidden: bool = False) -> list[Item]:
        """Return the windows of all programs, with what is shown in them.

        Args:
            hidden: also read what is not shown, as views behind others
        """
        found: list[Item] = []
        for program in self._children(_ROOT):
            for reference in self._children(program):
                found += self._read([reference], None)
        level = list(found)
        while level:
            level = self._next_level(level, hidden=hidden)
        return [one for one in found if hidden or one.has(State.SHOWING)]

    def _next_level(self, level: list[Item], *, hidden: bool) -> list[Item]:
        opened = [
            one
            for one in level
            if one.count and (hidden or one.has(State.SHOWING)) and one.count < _LARGE
        ]
        asked = [self._send(one.reference, _ACCESSIBLE, "GetChildren") for one in opened]
        below: list[Item] = []
        for one, message in zip(opened, asked, strict=True):
            answer = self._receive(message)
            one.children = self._read([tuple(child) for child in answer[0]] if answer else [], one)
            below += one.children
        return below

    def _children(self, reference: Reference) -> list[Reference]:
        answer = self._receive(self._send(reference, _ACCESSIBLE, "GetChildren"))
        return [tuple(one) for one in answer[0]] if answer else []

    def _read(self, references: list[Reference], parent: Item | None) -> list[Item]:
        """Return objects; those that are gone meanwhile are left out."""
        asked = [
            (
                reference,
                self._send(reference, _ACCESSIBLE, "GetRoleName"),
                self._get(reference, "Name"),
                self._get(reference, "Description"),
                self._send(reference, _ACCESSIBLE, "GetState"),
                self._get(reference, "ChildCount"),
            )
            for reference in references
        ]
        found: list[Item] = []
        for reference, *messages in asked:
            answers = [self._receive(message) for message in messages]
            if all(answers):
                role, name, about, states, count = (answer[0] for answer in answers)
                bits = states[0] | (states[1] << 32)
                found.append(Item(reference, role, name[1], about[1], bits, int(count[1]), parent))
        return found

    def box(self, item: Item) -> tuple[int, int, int, int]:
        """Return left, top, width and height of an object on the screen."""
        sent = self._send(item.reference, _COMPONENT, "GetExtents", "u", (_SCREEN,))
        answer = self._receive(sent)
        return tuple(answer[0]) if answer else (0, 0, 0, 0)

    def child(self, item: Item, index: int) -> Item | None:
        """Return one child of an object, as a cell of a large table."""
        sent = self._send(item.reference, _ACCESSIBLE, "GetChildAtIndex", "i", (index,))
        answer = self._receive(sent)
        found = self._read([tuple(answer[0])], item) if answer else []
        return found[0] if found else None

    def _get(self, reference: Reference, name: str) -> int:
        return self._send(reference, _PROPERTIES, "Get", "ss", (_ACCESSIBLE, name))

    def _send(
        self,
        to: Reference,
        interface: str,
        method: str,
        signature: str = "",
        body: tuple[Any, ...] = (),
    ) -> int:
        message = new_method_call(
            DBusAddress(to[1], to[0], interface), method, signature or None, body
        )
        serial = next(self._bus.outgoing_serial)
        self._bus.send(message, serial=serial)
        return serial

    def _receive(self, serial: int) -> tuple[Any, ...]:
        """Return the answer to a message, empty for an object that is gone."""
        while serial not in self._answers:
            self._take(self._bus.receive(timeout=_TIMEOUT))
        return self._answers.pop(serial)

    def _take(self, message: Message) -> None:
        fields = message.header.fields
        to = fields.get(HeaderFields.reply_serial)
        if to is not None:
            failed = message.header.message_type is MessageType.error
            self._answers[to] = () if failed else message.body
        elif fields.get(HeaderFields.member) == "Announcement":
            self.announced.append(str(message.body[3][1]))
        elif message.body and message.body[:2] == ("focused", 1):
            self._focus = (fields[HeaderFields.sender], fields[HeaderFields.path])

    def focus(self) -> Item | None:
        """Return what was reported last to have the keyboard, menu items included."""
        self.listen()
        found = [] if self._focus is None else self._read([self._focus], None)
        return found[0] if found else None

    def listen(self) -> None:
        """Take the events that have arrived."""
        try:
            while True:
                self._take(self._bus.receive(timeout=0.02))
        except TimeoutError:
            pass

    def menu(self) -> list[Item]:
        """Return the entries of the menu that has the keyboard; a menu is in no window."""
        item = self.focus()
        if item is None or item.role not in ("menu item", "check menu item", "radio menu item"):
            return []
        answer = self._receive(self._get(item.reference, "Parent"))
        return self._read(self._children(tuple(answer[0][1])), None) if answer else []


def _ask(
    bus: DBusConnection, to: Reference, interface: str, method: str, *texts: str
) -> tuple[Any, ...]:
    address = DBusAddress(to[1], to[0], interface)
    message = new_method_call(address, method, "s" * len(texts) or None, texts)
    return bus.send_and_get_reply(message).body
