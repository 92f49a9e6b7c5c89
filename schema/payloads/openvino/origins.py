"""The nodes of a partition behind the layers of an OpenVINO network, as the network names them.

Its front end names a layer ``node/operator/step``, lists the layers that were fused into another,
and names a port ``node:0`` after the node whose value it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from schema.payloads.openvino.graph import value_name
from schema.payloads.openvino.ir import Layer, Port

_ROUNDS = re.compile(r"/quantized_decomposed\.quantize_per_tensor\.[a-z]+/FakeQuantize$")
_GETITEM = "getitem"  # an output of a node with several
_PASSIVE = ("Const", "Parameter", "Result")


def origins_of(layers: Sequence[Layer], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return by name of a layer the nodes that it computes, its own last.

    A fused node counts where no layer is named after it, or has its value.
    """
    computing = [
        (layer, name)
        for layer, name in zip(layers, names, strict=True)
        if layer.type not in _PASSIVE
    ]
    valued = {node for layer, _ in computing for node in _ported(layer) if len(_ported(layer)) == 1}
    claimed = {_owner(layer) for layer, _ in computing} | valued
    found: dict[str, tuple[str, ...]] = {}
    for layer, name in computing:
        owner, fused = _owner(layer), _fused(layer)
        more = [node for node in fused if node not in claimed]
        claimed.update(more)
        own = [node for node in (owner or _only(_ported(layer)),) if node]
        if own or more:
            found[name] = tuple(dict.fromkeys((*more, *own)))
    return found


def values_of(
    layers: Sequence[Layer], names: Sequence[str], origins: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return by name of a layer the node whose value it computes; by name of a value for several.

    A port that has several names has the value of the last of these nodes in the partition: a
    layer was moved before a reshape, for one.
    """
    ports = {node for layer in layers for node in _ported(layer)}
    found: dict[str, tuple[str, ...]] = {}
    for layer, name in zip(layers, names, strict=True):
        if layer.type in _PASSIVE:
            continue
        if len(layer.outputs) > 1:
            for port in layer.outputs:
                found[value_name(layer, name, port)] = _computed(_of_port(port))
        nodes = _of_layer(layer, origins.get(name, ()), ports)
        if nodes:
            found[name] = nodes
    return {name: nodes for name, nodes in found.items() if nodes}


def _of_layer(layer: Layer, own: tuple[str, ...], ports: Collection[str]) -> tuple[str, ...]:
    """Return the nodes that a layer has the value of; of one with several, what all of them are."""
    owner, ported = _owner(layer), _ported(layer)
    nodes = _computed(ported) if len(layer.outputs) == 1 else ()
    if not nodes and ported and owner and len(_computed(ported)) < len(layer.outputs):
        return (owner,)  # an output of several
    if not nodes and len(layer.outputs) == 1 and _ROUNDS.search(layer.name):
        return (owner,)  # in integers, or real again
    if not nodes and not owner and len(own) == 1 and own[0] not in ports:
        return own
    return nodes


def _computed(nodes: Sequence[str]) -> tuple[str, ...]:
    return tuple(node for node in nodes if not node.startswith(_GETITEM))


def _owner(layer: Layer) -> str:
    return layer.name.split("/", 1)[0] if "/" in layer.name else ""


def _fused(layer: Layer) -> list[str]:
    parts = (each.strip() for each in layer.fused.split(","))
    return list(dict.fromkeys(each.split("/", 1)[0] for each in parts if "/" in each))


def _ported(layer: Layer) -> list[str]:
    return [node for port in layer.outputs for node in _of_port(port)]


def _of_port(port: Port) -> list[str]:
    return [word.rpartition(":")[0] for word in port.names.split(",") if ":" in word]


def _only(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else ""
