"""Users of each stored blob: nodes of delegates by key, instructions by operand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from inspector.files.payloads import delegate_payload
from inspector.files.session import FORWARD, Session
from inspector.join import record_maps
from inspector.join.node_index import nodes_by_handle
from inspector.join.operands import plan_operands
from inspector.memory.plan import value_name
from inspector.size.constant_names import constant_names
from inspector.size.owners import FilePart
from inspector.size.recorded_names import RecordedNames
from schema.errors import FormatError
from schema.graph import Graph, GraphNode, GraphValue, TensorMeta
from schema.objects.identity_cache import identity_cache
from schema.payloads.model import Constant
from schema.program import ProgramFile, instructions, operator_name
from schema.program import model as m

_SHOWN = 2
_ROLES = {"filter": "weight"}  # as modules of torch call it
# of the content, as keys of stored weights and their scales are
_HASH = re.compile(r"(?:scale_)?[0-9a-f]{32,}(?:[_-]\w+)?")
_NUMBER = re.compile(r"(?:\S+ )?v\d+")  # of a value, behind its method where there are several


@dataclass(frozen=True, slots=True)
class User:
    """A reader of a stored blob.

    Attributes:
        text: the reader, its argument and its module
        method: that it belongs to
        node: name in the recorded graph, empty if unknown
        instruction: that reads it, None inside of a delegate
        delegate: that it is inside of, or None
        name: of the blob in the recorded program, as in ``stem.0.weight``, or as the module of
            its node would call it where the program has no name for it; empty if unknown
        inferred: whether the name is only what the module would call it
    """

    text: str
    method: str
    node: str = ""
    instruction: int | None = None
    delegate: int | None = None
    name: str = ""
    inferred: bool = False


Users = Mapping[str, tuple[User, ...]]


@identity_cache
def stored_users(session: Session) -> Users:
    """Return name of a stored blob or constant -> its users, in the order of the program.

    A key of named data is used by the payload node that refers to it, a constant by the
    instructions that read it. Modules are recorded by debug handle.
    """
    program = session.program
    found: dict[str, dict[User, None]] = {}
    for plan in program.plans if program is not None else ():
        assert program is not None
        several = len(program.plans) > 1
        modules = _Modules(session, plan.name)
        front = f"{plan.name} " if several else ""
        for name, user in _payload_users(session, program, plan, modules):
            found.setdefault(name, {})[replace(user, text=front + user.text)] = None
        names = constant_names(session, plan.name)
        for value, user in _instruction_users(plan, modules, names):
            for name in (f"{front}{value_name(plan, value)}", _key(plan, value)):
                found.setdefault(name, {})[replace(user, text=front + user.text)] = None
    for member, user in _exported_weights(session):
        found.setdefault(member, {})[user] = None
    return _distinct({name: tuple(users) for name, users in found.items() if name})


def _exported_weights(session: Session) -> Iterator[tuple[str, User]]:
    """Return the members of an exported program that are weights, which are only numbered."""
    weights = session.record.weights if session.record is not None else None
    try:
        members = weights.members() if weights is not None else {}
    except FormatError:
        return
    for member, names in members.items():
        for name in names:
            yield member, User("exported program", FORWARD, name=name)


def _distinct(found: Users) -> Users:
    """Return users without names that are only inferred and that several blobs would have."""
    blobs: dict[str, set[str]] = {}
    for key, users in found.items():
        for user in users:
            blobs.setdefault(user.name, set()).add(key)
    return {
        key: tuple(
            replace(user, name="") if user.inferred and len(blobs[user.name]) > 1 else user
            for user in users
        )
        for key, users in found.items()
    }


def users_of(part: FilePart, users: Users) -> tuple[User, ...]:
    """Return the users of a part of a file; empty if unknown."""
    names = part.name.split(" = ")
    return tuple(dict.fromkeys(user for name in names for user in users.get(name, ())))


def constant_users(session: Session, method: str, name: str) -> tuple[User, ...]:
    """Return the users of a constant of a payload in a method; empty if unknown."""
    users = stored_users(session)
    key = f"{method} {name}" if len(session.methods) > 1 else name
    return users.get(name) or users.get(key, ())


def users_text(users: Sequence[User]) -> str:
    """Return the first users and the number of others as text."""
    return _listed([user.text for user in users])


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def part_title(part: FilePart, users: Users) -> str:
    """Return the name of a part; one that is stored under hash or number is called by its users."""
    if part.kind == "member":
        return _names_of(users_of(part, users)) or part.name
    names = part.name.split(" = ")
    if all(map(is_hash, names)):
        return blob_name(users_of(part, users)) or part.name
    if all(_is_anonymous(name) for name in names):
        return _names_of(users_of(part, users)) or part.name
    payload, _, key = part.name.rpartition(": ")
    if payload and is_hash(key) and (name := blob_name(users.get(key, ()))):
        return f"{payload}: entry of {name}"  # in the table of the payload; the blob is elsewhere
    return part.name


def blob_name(users: Sequence[User]) -> str:
    """Return the name in modules of a blob with these users, else the users; empty without any."""
    return _names_of(users) or users_text(users)


def name_inside(users: Sequence[User], method: str, delegate: int) -> str:
    """Return the name in modules of a blob, else its users inside of one delegate."""
    own = [one for one in users if (one.method, one.delegate) == (method, delegate)]
    return _names_of(users) or users_text(own or users)


def _names_of(users: Sequence[User]) -> str:
    """Return the names of a blob; empty unless all of its users know one."""
    names = tuple(dict.fromkeys(user.name for user in users))
    return _listed(names) if all(names) else ""


def is_hash(name: str) -> bool:
    """Return whether a key is the hash of its content, which names nothing."""
    return _HASH.fullmatch(name) is not None


def _is_anonymous(name: str) -> bool:
    return is_hash(name) or _NUMBER.fullmatch(name) is not None


class _Modules:
    """Recorded module paths by debug handle and instruction of one method."""

    def __init__(self, session: Session, method: str) -> None:
        record = session.record
        graph: Graph | None = None
        self._handles: Mapping[int, tuple[int, ...]] = {}
        if record is not None:
            graph = record_maps.edge_graph(record, method)
            self._handles = record_maps.handles(record, method)
        self._nodes: Mapping[int, tuple[GraphNode, ...]] = (
            nodes_by_handle(graph) if graph is not None else {}
        )
        self._names = RecordedNames(session, method, graph)

    def node_of(self, handles: Sequence[int]) -> str:
        """Return the first recorded node of these handles, empty if unknown."""
        nodes = (node.name for handle in handles for node in self._nodes.get(handle, ()))
        return next(nodes, "")

    def of_handles(self, handles: Sequence[int]) -> str:
        """Return `` in PATH`` if all nodes of these handles are in one module, else ``""``."""
        nodes = [node for handle in handles for node in self._nodes.get(handle, ())]
        paths = {node.module_path for node in nodes}
        path = paths.pop() if len(paths) == 1 else ""
        return f" in {path}" if path else ""

    def constant_of(
        self, handles: Sequence[int], role: str, tensor: TensorMeta | None, data: memoryview | None
    ) -> tuple[str, bool]:
        """Return what a constant that nodes of these handles read is called, and if inferred."""
        nodes = [node for handle in handles for node in self._nodes.get(handle, ())]
        found = self._names.find(nodes, role, tensor, data)
        if found is not None:
            return found, False
        return _weight_name(self.only_module(handles), role), True

    def only_module(self, handles: Sequence[int]) -> str:
        """Return the only module that nodes of these handles are in, else an empty string."""
        nodes = [node for handle in handles for node in self._nodes.get(handle, ())]
        paths = {node.module_path for node in nodes if node.module_path}
        return paths.pop() if len(paths) == 1 else ""

    def of_instruction(self, number: int) -> str:
        """Return the same for an instruction."""
        return self.of_handles(self._handles.get(number, ()))


def _payload_users(
    session: Session, program: ProgramFile, plan: m.ExecutionPlan, modules: _Modules
) -> Iterator[tuple[str, User]]:
    for number in range(len(plan.delegates)):
        payload = delegate_payload(program, plan, number, session.external)
        graph = payload.graph
        named = {one.name: one for one in payload.constants if one.location == "named"}
        used: set[str] = set()
        for node in graph.nodes if graph is not None else ():
            assert graph is not None
            handles = payload.debug_handles.get(node.name, ())
            for argument, value in _values_read(node, graph):
                for key, user in _readers(argument, value, named, handles, modules):
                    used.add(key)
                    text = f"delegate {number} {node.name}{user.text}"
                    yield key, replace(user, text=text, method=plan.name, delegate=number)
        for key in sorted(named.keys() - used):
            text = f"delegate {number} ({payload.backend_id})"
            yield key, User(text, plan.name, delegate=number)


def _values_read(node: GraphNode, graph: Graph) -> Iterator[tuple[str, GraphValue]]:
    for argument in node.args:
        for value in argument.values:
            if value in graph.values:
                yield argument.name, graph.values[value]


def _readers(
    argument: str,
    value: GraphValue,
    named: Mapping[str, Constant],
    handles: Sequence[int],
    modules: _Modules,
) -> Iterator[tuple[str, User]]:
    """Return the stored blobs of a value, its bytes and its scales, with who reads them."""
    tensor, key = value.tensor, value.constant
    quantization = tensor.quantization if tensor is not None else None
    scales = quantization.scale_constant if quantization is not None else ""
    if key not in named and scales not in named:  # most values are computed
        return
    role, place = f" {argument}" if argument else "", modules.of_handles(handles)
    recorded, name, inferred = modules.node_of(handles), "", False
    if key in named:
        name, inferred = modules.constant_of(handles, argument, tensor, named[key].data)
        yield key, User(f"{role}{place}", "", recorded, name=name, inferred=inferred)
    if scales in named:
        name = f"{name} scales" if name else ""
        yield scales, User(f"{role} scales{place}", "", recorded, name=name, inferred=inferred)


def _weight_name(module: str, role: str) -> str:
    return f"{module}.{_ROLES.get(role, role)}" if module and role else ""


def _instruction_users(
    plan: m.ExecutionPlan, modules: _Modules, names: Mapping[int, str]
) -> Iterator[tuple[int, User]]:
    operands = plan_operands(plan)
    for number, (_, _, instruction) in enumerate(instructions(plan)):
        args = instruction.instr_args
        if isinstance(args, m.KernelCall):
            user = f"instruction {number} {operator_name(plan, args)}"
        elif isinstance(args, m.DelegateCall):
            user = f"instruction {number} delegate {args.delegate_index}"
        else:
            continue
        for value in operands[number].reads:
            tensor = plan.values[value].val
            if isinstance(tensor, m.Tensor) and _is_stored(tensor):
                text = user + modules.of_instruction(number)
                name = names.get(value, "")
                yield value, User(text, plan.name, instruction=number, name=name)


def _is_stored(tensor: m.Tensor) -> bool:
    return tensor.data_buffer_idx > 0 or tensor.extra_tensor_info is not None


def _key(plan: m.ExecutionPlan, value: int) -> str:
    """Return the key of a constant stored in a data file, else an empty string."""
    tensor = plan.values[value].val
    info = tensor.extra_tensor_info if isinstance(tensor, m.Tensor) else None
    return info.fully_qualified_name or "" if info is not None else ""
