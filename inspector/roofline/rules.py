"""The rules that tables of operators are made of: each computes the work of one call."""

from __future__ import annotations

import math
from typing import cast

from inspector.roofline.work import NO_WORK, Call, CallTensor, Rule, UnknownWorkError, Work


def no_work(_call: Call) -> Work:
    """Return no work: views, and scalars of the program."""
    return NO_WORK


def elementwise(operations: int) -> Rule:
    """Return the rule of operators that compute each element of the result by itself."""
    return lambda call: call.work(operations * call.output.count)


def of_input(operations: int) -> Rule:
    """Return the rule of operators that visit each element of their first operand."""
    return lambda call: call.work(operations * call.tensor(0).count)


def reduction(operations: int, each_result: int = 0) -> Rule:
    """Return the rule of reductions.

    Args:
        operations: for each element that is reduced
        each_result: for each result
    """

    def rule(call: Call) -> Work:
        results = each_result * call.output.count
        return call.work(operations * call.tensor(0).count + results)

    return rule


def copied(call: Call) -> Work:
    """Return the work of moving all elements."""
    return call.work(0)


def written_only(call: Call) -> Work:
    """Return the work of filling a tensor with what is not read from memory."""
    return call.work(0, read=0)


def part_read(call: Call) -> Work:
    """Return the work of copying a part: only what arrives is read."""
    return call.work(0, read=call.written)


def gathered(table: int, indices: int) -> Rule:
    """Return the rule of copying rows named by indices.

    Args:
        table: position of the tensor of which only the result's elements are read
        indices: position of the indices, all of which are read
    """

    def rule(call: Call) -> Work:
        source, result = call.tensor(table), call.output
        found = source.bytes_of(result.count) + sum(one.nbytes for one in call.tensors[indices])
        return call.work(0, read=found)

    return rule


def scattered(values: int, operations: int = 0, *, in_place: bool = False) -> Rule:
    """Return the rule of replacing parts of a tensor.

    Args:
        values: position of the new values, all read where they are a tensor
        operations: for each new value
        in_place: the tensor itself is written where values go, and not copied
    """

    def rule(call: Call) -> Work:
        given = call.tensors[values] if values < len(call.tensors) else ()
        count = given[0].count if given else 0
        if not in_place:
            return call.work(operations * count)
        moved = given[0].nbytes if given else 0
        others = [one for group in call.tensors[1:] for one in group]
        again = moved if operations else 0
        read = sum({one.name: one.nbytes for one in others}.values()) + again
        return call.work(operations * count, read=read, written=moved)

    return rule


def matmul(first: int) -> Rule:
    """Return the rule of matmuls: two operations for each product, none for an added matrix.

    Args:
        first: position of the first factor, whose last dimension is summed over
    """

    def rule(call: Call) -> Work:
        inner = call.tensor(first).sizes[-1:]
        return call.work(2 * call.output.count * math.prod(inner))

    return rule


def convolution(call: Call) -> Work:
    """Return the work of a convolution of any rank, grouped or transposed; bias is not counted.

    A transposed one places its filter at each element of its input, others at each result.
    """
    given, weight = call.tensor(0, "input"), call.tensor(1, "weight")
    return call.work(_convolution_flops(given, weight, call.output, _is_set(call, 6)))


def _is_set(call: Call, position: int) -> bool:
    return bool(call.literal(position, "transposed"))


def _convolution_flops(
    given: CallTensor, weight: CallTensor, result: CallTensor, transposed: bool
) -> int:
    rank = len(weight.sizes) - 2
    if rank < 0:
        raise UnknownWorkError(f"{weight.name} has no dimensions of a filter")
    placed = given if transposed else result
    # Each placement multiplies one whole filter of weight.sizes[1:], for all channels placed.
    return 2 * placed.count * math.prod(weight.sizes[1:])


def convolution_backward(call: Call) -> Work:
    """Return the work of the gradients that the mask asks for; that of the bias is not counted."""
    grad, given, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    transposed, mask = bool(call.literal(7, "transposed")), _items(call.literal(10, "output_mask"))
    if len(mask) < 2:
        raise UnknownWorkError(f"{call.target}: output_mask is missing")
    once = _convolution_flops(given, weight, grad, transposed)
    return call.work(once * sum(map(bool, mask[:2])))


def pooling(call: Call) -> Work:
    """Return the work of a pool: one operation for each element of each window."""
    kernel = call.literal(1, "kernel_size")
    rank = 3 if "pool3d" in call.target else 2
    return call.work(call.output.count * _window(kernel, rank, call.target))


def pooling_backward(call: Call) -> Work:
    """Return the work of the gradient of an average pool."""
    rank = 3 if "pool3d" in call.target else 2
    return call.work(call.tensor(0).count * _window(call.literal(2, "kernel_size"), rank, "pool"))


def _window(kernel: object, rank: int, target: str) -> int:
    sizes = _integers(kernel)
    if not sizes:
        raise UnknownWorkError(f"{target}: kernel_size is missing")
    return sizes[0] ** rank if len(sizes) == 1 else math.prod(sizes)


def _items(value: object) -> tuple[object, ...]:
    """Return the members of a literal list, a scalar as its only one."""
    listed = isinstance(value, (tuple, list))
    return tuple(cast("tuple[object, ...]", value)) if listed else (value,)


def _integers(value: object) -> tuple[int, ...]:
    return tuple(one for one in _items(value) if isinstance(one, int))


def normalization(parameters: tuple[int, ...]) -> Rule:
    """Return the rule of layer and group norms: sum, centre, square and sum, scale are 5.

    Args:
        parameters: positions of weight and bias, each one operation more where it is given
    """

    def rule(call: Call) -> Work:
        given = sum(bool(call.tensors[at]) for at in parameters if at < len(call.tensors))
        return call.work((5 + given) * call.tensor(0).count)

    return rule


def attention(call: Call) -> Work:
    """Return the work of scaled dot product attention: its two matmuls, also what a mask hides."""
    query, key, value = call.tensor(0, "query"), call.tensor(1, "key"), call.tensor(2, "value")
    if min(len(query.sizes), len(key.sizes), len(value.sizes)) < 2:
        raise UnknownWorkError(f"{call.target}: operands have fewer than two dimensions")
    steps, width = key.sizes[-2], value.sizes[-1]
    rows = math.prod(query.sizes[:-1])
    return call.work(2 * rows * steps * (query.sizes[-1] + width))


def sorting(call: Call) -> Work:
    """Return the comparisons of sorting along one dimension, the last unless it is named."""
    given = call.tensor(0)
    at = call.literal(2 if "topk" in call.target else 1, "dim")
    dim = at if isinstance(at, int) and -len(given.sizes) <= at < len(given.sizes) else -1
    length = given.sizes[dim] if given.sizes else 1
    return call.work(given.count * max(1, math.ceil(math.log2(max(1, length)))))


def distances(call: Call) -> Work:
    """Return the work of distances between rows: subtract, power and add in each column."""
    columns = math.prod(call.tensor(0).sizes[-1:])
    return call.work(3 * columns * call.output.count)


def fourier(call: Call) -> Work:
    """Return the usual estimate of a real transform: 2.5 n log2 n over all dimensions named."""
    dims = _integers(call.literal(1, "dim"))
    real = call.tensor(0) if "r2c" in call.target else call.output
    if not dims:
        raise UnknownWorkError(f"{call.target}: dim is missing")
    length = math.prod(real.sizes[dim] for dim in dims)
    return call.work(round(2.5 * real.count * math.log2(max(1, length))))


def bags(call: Call) -> Work:
    """Return the work of summing rows of a table: one addition for each element read."""
    table, indices = call.tensor(0), call.tensor(1)
    moved = indices.count * math.prod(table.sizes[1:])
    others = sum(one.nbytes for one in call.inputs if one.name != table.name)
    return call.work(moved, read=table.bytes_of(moved) + others)


def sampled(call: Call) -> Work:
    """Return the work of sampling images: 8 for a place, 7 bilinear and 35 bicubic an element."""
    mode = call.literal(2, "interpolation_mode")
    each = {0: 7, 1: 0, 2: 35}.get(mode if isinstance(mode, int) else 0, 7)
    return call.work(each * call.output.count + 8 * (call.tensor(1).count // 2))


def first_stored(call: Call) -> Work:
    """Return the work of storing the first tensor read into a part of another."""
    moved = next((one.nbytes for one in call.inputs), None)
    if moved is None:
        raise UnknownWorkError(f"{call.target}: what is stored is not a tensor")
    return call.work(0, read=moved, written=moved)
