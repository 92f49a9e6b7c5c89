"""Arguments of nodes: the values they read, or literals to print.

Source: exir/serde/schema.py and torch/_export/serde/schema.py, ``Argument``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from schema.etrecord.graph.dtypes import LAYOUTS, MEMORY_FORMATS
from schema.etrecord.graph.json_text import Json
from schema.etrecord.graph.names import short_target
from schema.etrecord.graph.unions import NONE, text, unfold
from schema.graph import Argument

# higher-order operators have no schema; these are the parameters of their Python functions
HIGHER_ORDER_ARGUMENTS = {
    "higher_order.cond": ("pred", "true_fn", "false_fn", "operands"),
    "higher_order.map_impl": ("f", "xs", "pos_args"),
    "higher_order.while_loop": ("cond_fn", "body_fn", "carried_inputs", "additional_inputs"),
    "higher_order.scan": ("combine_fn", "init", "xs", "additional_inputs"),
    "higher_order.associative_scan": ("combine_fn", "xs", "additional_inputs"),
}
_SCALARS = frozenset(("as_int", "as_float", "as_bool", "as_string"))
_LISTS = frozenset(
    ("as_ints", "as_floats", "as_bools", "as_strings", "as_int_lists", "as_float_lists")
)
_MAX_SHOWN = 2000
SubgraphReader: TypeAlias = Callable[[str, Json], str]


class ArgumentReader:
    """Decodes arguments of one program.

    Attributes:
        unknown: tags that no release is known to write
    """

    def __init__(self, dtype_names: dict[int, str]) -> None:
        self.unknown: dict[str, None] = {}
        self._dtype_names = dtype_names

    def read(self, name: str, union: Json, subgraph: SubgraphReader) -> Argument:
        """Return one argument; nested graphs are passed to ``subgraph``, which names them."""
        tag, value = unfold(union)
        if tag == "as_tensor":
            return Argument(name, (text(value["name"]),))
        if tag in _SCALARS:
            return Argument(name, (), _plain(value))
        if tag in _LISTS:
            return Argument(name, (), frozen(value))
        if tag == "as_tensors":
            return Argument(name, tuple([text(item["name"]) for item in value]))
        if tag == "as_none":
            return Argument(name)
        if tag == "as_graph":
            return Argument(name, (), subgraph(text(value["name"]), value["graph"]))
        return self._rare(name, tag, value, subgraph)

    def _rare(self, name: str, tag: str, value: Json, subgraph: SubgraphReader) -> Argument:
        shown = self._enumerated(tag, value)
        if shown is not None:
            return Argument(name, (), shown)
        if tag in _SYMBOLIC:
            return _mixed(name, [value], as_list=False)
        if tag in _MIXED_LISTS:
            return _mixed(name, value, as_list=True)
        if tag == "as_nested_tensors":
            flat = [text(item["name"]) for group in value for item in group]
            return Argument(name, tuple(flat), _shape_of_groups(value))
        if tag == "as_string_to_argument":
            return self._keyed(name, value, subgraph)
        self.unknown[tag[:40]] = None
        return Argument(name, (), repr(value)[:_MAX_SHOWN])

    def _enumerated(self, tag: str, value: Json) -> object:
        """Return the printable form of a constant with a name, None for any other tag."""
        if tag == "as_scalar_type":
            return self._dtype_names.get(value, f"dtype_{value}")
        if tag == "as_memory_format":
            return MEMORY_FORMATS.get(value, f"memory_format_{value}")
        if tag == "as_layout":
            return LAYOUTS.get(value, f"layout_{value}")
        if tag == "as_device":
            index = value.get("index")
            return f"{value['type']}" if index is None else f"{value['type']}:{index}"
        if tag == "as_operator":
            return short_target(text(value))
        if tag == "as_custom_obj":
            return f"{value['name']}: {value.get('class_fqn', 'custom object')}"
        return complex(value["real"], value["imag"]) if tag == "as_complex" else None

    def _keyed(self, name: str, value: Json, subgraph: SubgraphReader) -> Argument:
        parts = [self.read(key, item, subgraph) for key, item in value.items()]
        shown = {part.name: part.values or part.literal for part in parts}
        values = tuple(item for part in parts for item in part.values)
        return Argument(name, values, repr(shown)[:_MAX_SHOWN])


_SYMBOLIC = frozenset(("as_sym_int", "as_sym_bool", "as_sym_float", "as_optional_tensor"))
_MIXED_LISTS = frozenset(("as_sym_ints", "as_sym_bools", "as_sym_floats", "as_optional_tensors"))


def _mixed(name: str, items: Json, *, as_list: bool) -> Argument:
    """Return an argument whose items are values or constants; constants stay printable."""
    values: list[str] = []
    shown: list[str] = []
    constants: list[object] = []
    for item in items:
        tag, inner = unfold(item)
        if tag in ("as_name", "as_tensor"):
            value = text(inner if tag == "as_name" else inner["name"])
            values.append(value)
            shown.append(value)
        else:
            constants.append(None if tag == NONE[0] else _plain(inner))
            shown.append(str(constants[-1]))
    if not values:
        return Argument(name, (), tuple(constants) if as_list else constants[0])
    return Argument(name, tuple(values), f"[{', '.join(shown)}]" if constants else None)


def _shape_of_groups(groups: Json) -> str:
    return "[" + ", ".join(f"[{', '.join(i['name'] for i in group)}]" for group in groups) + "]"


def _plain(value: Json) -> object:
    if value is None or isinstance(value, (int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} instead of a constant")


def frozen(value: Json) -> object:
    """Return a constant with lists as tuples."""
    if value.__class__ is list:
        return tuple([frozen(item) for item in value])
    return _plain(value)
