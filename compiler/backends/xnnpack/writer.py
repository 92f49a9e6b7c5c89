"""Writes a payload: values, nodes, and constants by the hash of their content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from compiler.interface.named_data import HashedBytes, NamedDataStore, NamedDataStoreOutput
from compiler.memory.specs import raw_bytes
from schema.payloads.xnnpack import model as m
from schema.payloads.xnnpack.codec import encode
from schema.payloads.xnnpack.nodes import NodeForm

DATATYPES = {torch.float32: 1, torch.float16: 2, torch.int8: 3, torch.bfloat16: 14}
QINT32, QCINT8, QCINT32, QCINT4, QDINT8, QBINT4 = 5, 6, 7, 8, 9, 10  # XNNDatatype of the schema
_ALIGNMENT = 16


class PayloadWriter:
    """Collects the nodes and values of one delegate; ids are indices of values.

    Attributes:
        file: where constants are stored, None for the program itself
        origins: names of the graph nodes that further payload nodes represent
    """

    def __init__(self, num_externs: int) -> None:
        """Begin a payload.

        Args:
            num_externs: inputs and results of the delegate
        """
        self.file: str | None = None
        self.origins: tuple[str, ...] = ()
        self._num_externs = num_externs
        self._values: list[m.XValue] = []
        self._nodes: list[m.XNode] = []
        self._handles: dict[int, tuple[int, ...]] = {}
        self._origins: dict[int, tuple[str, ...]] = {}
        self._constants: list[m.ConstantDataOffset] = [m.ConstantDataOffset(named_key="")]
        self._places: dict[str, int] = {}
        self._blobs = NamedDataStore()
        self._ends: dict[int, list[int]] = {m.EXTERNAL_INPUT: [], m.EXTERNAL_OUTPUT: []}

    def value(
        self,
        datatype: int,
        dims: Sequence[int],
        *,
        quantization: m.QuantParams | None = None,
        constant: int = 0,
        external: int = m.NO_VALUE,
        flags: int = 0,
    ) -> int:
        """Add a value and return its id.

        Args:
            datatype: code in the file
            dims: sizes in the order of memory
            quantization: None for floating point
            constant: index of its data, 0 for a value that is computed or an input
            external: index among the arguments of the delegate call
            flags: 1 external input, 2 external output
        """
        ident = len(self._values)
        tensor = m.TensorValue(
            datatype, len(dims), tuple(dims), constant, external, flags, id_out=ident
        )
        whole = tensor if quantization is None else m.QuantizedTensorValue(tensor, quantization)
        self._values.append(m.XValue(whole))
        if flags:
            self._ends[flags].append(ident)
        return ident

    def constant(self, tensor: torch.Tensor, prefix: str = "") -> int:
        """Store the bytes of a tensor and return their index; equal bytes are stored once.

        They are stored in the current file.
        """
        data = HashedBytes(raw_bytes(tensor.contiguous()))
        key = prefix + data.sha256.hex()
        if key not in self._places:
            self._places[key] = len(self._constants)
            self._constants.append(m.ConstantDataOffset(m.NAMED_OFFSET, len(data), key))
            self._blobs.add_named_data(key, data, _ALIGNMENT, self.file)
        return self._places[key]

    def node(
        self,
        form: NodeForm,
        handles: Sequence[int] = (),
        bounds: tuple[float, float] | None = None,
    ) -> int:
        """Add a node and return its index.

        Args:
            form: operation and parameters
            handles: debug handles of the operators it represents, the main one first; none for
                a node without operator in the program
            bounds: of its result
        """
        limits = None if bounds is None else m.OutputMinMax(*bounds)
        if handles:
            self._handles[len(self._nodes)] = tuple(dict.fromkeys(handles))
            self._origins[len(self._nodes)] = self.origins
        main = handles[0] if handles else m.INSERTED_HANDLE
        self._nodes.append(m.XNode(form, main, limits))
        return len(self._nodes) - 1

    def stands_for(self, place: int, handles: Sequence[int]) -> None:
        """Add the operators of ``origins`` to those of a node."""
        known, names = self._handles.get(place, ()), self._origins.get(place, ())
        self._handles[place] = tuple(dict.fromkeys((*known, *handles)))
        self._origins[place] = tuple(dict.fromkeys((*names, *self.origins)))

    def origins_by_place(self) -> dict[int, tuple[str, ...]]:
        """Return the names of the graph nodes of each payload node, by index."""
        return {place: names for place, names in self._origins.items() if names}

    def finish(self) -> tuple[bytes, dict[int, tuple[int, ...]], NamedDataStoreOutput]:
        """Return the payload, debug handles by node index, and the constants by key."""
        table = m.XnnGraphTable(
            version="0",
            xnodes=tuple(self._nodes),
            xvalues=tuple(self._values),
            num_externs=self._num_externs,
            input_ids=tuple(self._ends[m.EXTERNAL_INPUT]),
            output_ids=tuple(self._ends[m.EXTERNAL_OUTPUT]),
            constant_data=tuple(self._constants),
        )
        blobs: Any = self._blobs.get_named_data_store_output()
        # Tools compare the result of a node with the result of the last of its operators.
        handles = {place: tuple(sorted(found)) for place, found in self._handles.items()}
        return encode(m.XNNGraph(table)), handles, blobs
