"""The sizes that the tensors of a program had in its runs, where dynamic ones have only bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspector.files.run_report import run_report
from inspector.files.session import Session
from inspector.graph.plan_graph import value_names
from inspector.roofline.work import BOUNDED
from schema.objects.identity_cache import identity_cache
from schema.program.model import Tensor


@identity_cache
def run_sizes(session: Session, method: str) -> Mapping[str, tuple[int, ...]]:
    """Return the sizes of each tensor with dynamic ones, by its name in the graph of the program.

    Empty where they are not known: the report beside the trace has none, or those of another
    program.
    """
    program = session.program
    if program is None or method not in session.methods:
        return {}
    found = [run_report(dump) for dump in session.timed_dumps]
    reports = [one for one in found if one is None or one.only_method == method]
    if len(reports) != 1 or reports[0] is None:
        return {}
    plan = program.plan(method)
    sizes, names = reports[0].sizes, value_names(plan)
    dynamic = {
        str(index): (index, value.val)
        for index, value in enumerate(plan.values)
        if isinstance(value.val, Tensor) and value.val.shape_dynamism
    }
    if not all(key in dynamic and _may_have(dynamic[key][1], one) for key, one in sizes.items()):
        return {}
    return {names[dynamic[key][0]]: tuple(one) for key, one in sizes.items()}


def _may_have(tensor: Tensor, sizes: Sequence[int]) -> bool:
    """Return whether a tensor of a program can have these sizes."""
    pairs = zip(sizes, tensor.sizes, strict=False)
    is_bounded = tensor.shape_dynamism == BOUNDED
    within = all(size >= 0 and (size <= bound or not is_bounded) for size, bound in pairs)
    return len(sizes) == len(tensor.sizes) and within
