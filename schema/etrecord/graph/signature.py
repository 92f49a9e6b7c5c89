"""Which inputs of a program are parameters, and which outputs are written back.

Source: ``GraphSignature`` of exir/serde/schema.py; the form with one dictionary a kind is that
of release 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.unions import mapping, text, unfold

USER_INPUT, USER_OUTPUT = "user_input", "user_output"
_TARGETS = (
    "parameter_name",
    "buffer_name",
    "tensor_constant_name",
    "custom_obj_name",
    "user_input_name",
)


@dataclass(frozen=True, slots=True)
class Slot:
    """The role of one input or output.

    Attributes:
        kind: user_input, parameter, buffer, tensor_constant, custom_obj, token, constant_input;
            user_output, buffer_mutation, user_input_mutation, loss_output, …
        name: its value; empty if the position decides
        target: its parameter, buffer or input
        persistent: whether a buffer is part of the state dict, None if unknown
    """

    kind: str
    name: str = ""
    target: str = ""
    persistent: bool | None = None


@dataclass(frozen=True, slots=True)
class Signature:
    """The roles of all inputs and outputs, in order.

    Attributes:
        inputs: one for each placeholder
        outputs: one for each returned value
        by_name: inputs by value name, for files whose order differs
    """

    inputs: tuple[Slot, ...] = ()
    outputs: tuple[Slot, ...] = ()
    by_name: dict[str, Slot] = field(default_factory=dict[str, Slot])

    def input(self, index: int, name: str) -> Slot:
        """Return the role of an input; a user input if the file does not specify it.

        Constants are unnamed, so their position decides.
        """
        slot = self.inputs[index] if index < len(self.inputs) else None
        if slot and (not name or slot.name in ("", name)):
            return slot
        return self.by_name.get(name) or Slot(USER_INPUT, name)

    def output(self, index: int) -> Slot:
        """Return the role of an output; a user output where the file is silent."""
        return self.outputs[index] if index < len(self.outputs) else Slot(USER_OUTPUT)


def read_signature(tree: Json) -> Signature:
    """Return the roles in either form; empty without a signature."""
    entries = mapping(tree)
    if "input_specs" in entries:
        inputs, outputs = entries["input_specs"], entries["output_specs"]
        return _signature([_slot(spec) for spec in inputs], [_slot(spec) for spec in outputs])
    return _old_signature(entries)


def _signature(inputs: list[Slot], outputs: list[Slot]) -> Signature:
    return Signature(tuple(inputs), tuple(outputs), {slot.name: slot for slot in inputs})


def _slot(union: Json) -> Slot:
    kind, spec = unfold(union)
    name = text(spec.get("name") or "")
    if "arg" in spec:
        name = _argument_name(spec["arg"])
    target = next((text(spec[key]) for key in _TARGETS if spec.get(key)), "")
    persistent = spec.get("persistent")
    return Slot(kind, name, target, persistent if isinstance(persistent, bool) else None)


def _argument_name(argument: Json) -> str:
    """Return the name of a plain or tagged argument, empty for a constant."""
    inner = mapping(argument if "name" in argument else unfold(argument)[1])
    return text(inner.get("name") or inner.get("as_name") or "")


def _old_signature(tree: dict[str, Json]) -> Signature:
    inputs = _slots("parameter", tree.get("inputs_to_parameters"))
    inputs += _slots("buffer", tree.get("inputs_to_buffers"))
    inputs += [Slot(USER_INPUT, text(name)) for name in tree.get("user_inputs") or ()]
    outputs = _slots("buffer_mutation", tree.get("buffers_to_mutate"))
    outputs += [Slot(USER_OUTPUT, text(name)) for name in tree.get("user_outputs") or ()]
    return _signature(inputs, outputs)


def _slots(kind: str, targets: Json) -> list[Slot]:
    return [Slot(kind, name, text(target)) for name, target in mapping(targets).items()]
