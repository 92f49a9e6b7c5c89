"""To how many bytes the segments of files are aligned."""

from __future__ import annotations

from schema.flat_tensor import FlatTensor
from schema.program.codec import SEGMENT_ALIGNMENT
from schema.program.program import ProgramFile

_WIDEST = 1 << 16  # bytes; the largest page that files are aligned to


def alignment_of(*artifacts: ProgramFile | FlatTensor) -> int:
    """Return the largest segment alignment of files, in bytes.

    That of a file is the smallest one from 128 on that explains the position of each segment, or
    else the largest power of two that divides all positions.
    """
    return max(map(_alignment, artifacts), default=SEGMENT_ALIGNMENT)


def _alignment(artifact: ProgramFile | FlatTensor) -> int:
    places, end = _places(artifact)
    if not places:
        return SEGMENT_ALIGNMENT
    steps = [SEGMENT_ALIGNMENT << n for n in range((_WIDEST // SEGMENT_ALIGNMENT).bit_length())]
    for step in steps:
        at = end
        for start, size in places:
            if start != -(-at // step) * step:
                break
            at = start + size
        else:
            return step
    whole = [step for step in steps if all(start % step == 0 for start, _ in places)]
    return max(whole, default=SEGMENT_ALIGNMENT)


def _places(artifact: ProgramFile | FlatTensor) -> tuple[list[tuple[int, int]], int]:
    """Return start and size of each segment with bytes, in order, and where the tables end."""
    if isinstance(artifact, FlatTensor):
        header = artifact.header
        end = 0 if header is None else header.flatbuffer_offset + header.flatbuffer_size
        return sorted((a, b - a) for a, b in artifact.extents if b > a), end
    head, segments = artifact.header, artifact.table.segments or ()
    if head is None:
        return [], 0
    found = [(head.segment_base_offset + s.offset, s.size) for s in segments if s.size]
    return sorted(found), head.program_size
