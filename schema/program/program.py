"""The program artifact: tables, segments, and where each tensor's bytes are."""

from __future__ import annotations

from dataclasses import dataclass, field

from schema.dtypes.scalar_type import tensor_nbytes
from schema.errors import FormatError, Issue
from schema.flatbuf.spec import UnknownMember
from schema.objects.identity_cache import identity_cache
from schema.program import model as m

EXTERNAL = 1  # TensorDataLocation
IN_SEGMENT = 1  # DataLocation
_EMPTY = memoryview(b"")


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A ``.pte`` file.

    Attributes:
        table: the root table
        header: the extended header, None if the file has no segments
        segments: read-only bytes of each segment, clamped to the file if it is truncated
        identifier: file identifier, ``ET12``
        file: path or label
        issues: inconsistencies that did not prevent reading
    """

    table: m.ProgramTable
    header: m.ExtendedHeader | None = field(compare=False)  # sizes and places, not content
    segments: tuple[memoryview, ...]
    identifier: str = "ET12"
    file: str = field(default="", compare=False)
    issues: tuple[Issue, ...] = field(default=(), compare=False)
    nbytes: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        return id(self)

    @property
    def plans(self) -> tuple[m.ExecutionPlan, ...]:
        """Return the execution plans, one per method."""
        return self.table.execution_plan

    @property
    def execution_plan(self) -> tuple[m.ExecutionPlan, ...]:
        """Return the same under the name that the file format has for them."""
        return self.table.execution_plan

    def plan(self, method: str) -> m.ExecutionPlan:
        """Return the plan of a method.

        Raises: KeyError naming the available methods
        """
        for plan in self.plans:
            if plan.name == method:
                return plan
        names = ", ".join(plan.name for plan in self.plans) or "none"
        raise KeyError(f"no method {method!r}; this program has {names}")

    def delegate_data(self, delegate: m.BackendDelegate) -> memoryview:
        """Return the processed bytes of a delegate.

        Raises: FormatError if its reference is invalid
        """
        ref = delegate.processed
        if ref is None:
            return _EMPTY
        if ref.location == IN_SEGMENT:
            return self.segment(ref.index, f"delegate {delegate.id}")
        inline = self.table.backend_delegate_data or ()
        if ref.index >= len(inline):
            raise self._dangling(f"delegate {delegate.id}", "inline blob", ref.index, len(inline))
        return inline[ref.index].data

    def segment(self, index: int, user: str) -> memoryview:
        """Return the bytes of a segment.

        Raises: FormatError naming the user of a segment that does not exist
        """
        if index >= len(self.segments):
            raise self._dangling(user, "segment", index, len(self.segments))
        return self.segments[index]

    def _dangling(self, user: str, what: str, index: int, count: int) -> FormatError:
        return FormatError(f"{what} index below {count}", str(index), field=user, file=self.file)

    def named_data_map(self) -> dict[str, memoryview]:
        """Return the named blobs by key; invalid entries are skipped."""
        entries = self.table.named_data or ()
        return {
            entry.key: self.segments[entry.segment_index]
            for entry in entries
            if entry.segment_index < len(self.segments)
        }

    def constant_data(self, tensor: m.Tensor) -> memoryview | None:
        """Return the stored bytes of a constant or of the initial value of a mutable tensor.

        None if the tensor has no bytes in this file (an activation, an external tensor).

        Raises: FormatError if its buffer index is invalid
        """
        extra = tensor.extra_tensor_info
        if tensor.data_buffer_idx == 0 or (extra is not None and extra.location == EXTERNAL):
            return None
        if min(tensor.sizes, default=0) < 0:
            found = str(list(tensor.sizes))
            raise FormatError("sizes of zero and more", found, field="sizes", file=self.file)
        nbytes = tensor_nbytes(tensor.scalar_type, tensor.sizes)
        if tensor.allocation_info is not None:
            starts = (self.table.mutable_data_segments or (None,))[0]
            return self._subsegment(starts, tensor.data_buffer_idx, nbytes, "mutable data")
        starts = self.table.constant_segment
        if starts is not None and starts.offsets:
            return self._subsegment(starts, tensor.data_buffer_idx, nbytes, "constant")
        legacy = self.table.constant_buffer or ()
        if tensor.data_buffer_idx >= len(legacy):
            raise self._dangling("constant", "buffer", tensor.data_buffer_idx, len(legacy))
        return legacy[tensor.data_buffer_idx].storage[:nbytes]

    def _subsegment(
        self, starts: m.SubsegmentOffsets | None, index: int, nbytes: int, user: str
    ) -> memoryview:
        count = len(starts.offsets) if starts is not None else 0
        if starts is None or index >= count:
            raise self._dangling(user, "buffer", index, count)
        data = self.segment(starts.segment_index, user)
        start = starts.offsets[index]
        if start + nbytes > len(data):
            raise FormatError(
                f"{nbytes} bytes at {start} inside segment {starts.segment_index}",
                f"a segment of {len(data)} bytes",
                field=f"{user} {index}",
                file=self.file,
            )
        return data[start : start + nbytes]


def operator_name(plan: m.ExecutionPlan, call: m.KernelCall) -> str:
    """Return the full name of the called operator, or a string that reports an invalid index."""
    if 0 <= call.op_index < len(plan.operators):
        return plan.operators[call.op_index].full_name
    return f"operator {call.op_index} (missing)"


def backend_id(plan: m.ExecutionPlan, call: m.DelegateCall) -> str:
    """Return the backend of the called delegate, or a string that reports an invalid index."""
    if 0 <= call.delegate_index < len(plan.delegates):
        return plan.delegates[call.delegate_index].id
    return f"delegate {call.delegate_index} (missing)"


def instruction_kind(instruction: m.Instruction) -> str:
    """Return the kind of an instruction, as in ``KernelCall``."""
    args = instruction.instr_args
    if args is None:
        return "None"
    if isinstance(args, UnknownMember):
        return f"Unknown({args.tag})"
    return type(args).__name__


@identity_cache
def instructions(plan: m.ExecutionPlan) -> tuple[tuple[int, int, m.Instruction], ...]:
    """Return (chain, index in chain, instruction) of all chains in order."""
    return tuple(
        (number, index, instruction)
        for number, chain in enumerate(plan.chains)
        for index, instruction in enumerate(chain.instructions)
    )
