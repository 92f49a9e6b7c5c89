"""What the figures mean: one definition each, shown on hover and in docs/glossary.md."""

from __future__ import annotations

TIMES = {
    "time": "time of one run: the mean over the steady runs",
    "steady run": "a timed run that is neither cold nor an outlier",
    "mean": "mean over the steady runs",
    "p50": "median over the steady runs; from five runs on",
    "p10": "a tenth of the steady runs were faster; from five runs on",
    "p90": "a tenth of the steady runs were slower; from five runs on",
    "min": "the smallest of the values, of times over the steady runs",
    "max": "the largest of the values, of times over the steady runs",
    "tags": "what the mean includes or assumes: the trace, logged values, the unit of ticks",
    "share of method": "the time in all runs as a share of that of the method with the trace",
    "time in range": "the part of the time of a run that lies in the chosen range",
    "share of range": "the time in the range as a share of that of the method in it",
    "start": "when the first of its events begins, counted from the begin of the run or trace",
    "uncut time": "time of the whole events, also of what lies outside of the chosen range",
    "events": "events that overlap the chosen range",
    "cut": "events that begin before the chosen range or end after it",
    "kernel, mean": "the part of the mean that is spent inside the kernel, without calling it",
    "mean of ticks": "mean over the steady runs in steps of a clock whose unit is unknown",
    "passes": "how often the instruction runs in one run: more than once inside loops",
    "time in delegates": "time of the calls of delegates",
    "time in operators": "time of the operators that run outside of delegates",
    "time in control": "time of jumps, moves and frees",
    "unattributed": "time of the method that no event of the trace accounts for",
    "tracing": "what the trace adds to a run: with it minus without it",
    "logging of values": "what a trace and the values it logs add to a run",
    "cost of logging values": "what they add to a run, with a minus since it is taken off",
    "cost of tracing": "what the trace adds to a run, with a minus since it is taken off",
    "delegate overhead": "what a call of a delegate takes beyond the operators inside",
    "without a trace": "time of runs that recorded nothing: the program's own",
    "with tracing": "time of runs that recorded a trace, which takes time itself",
    "values logged": "runs that copied values while they were timed: not the program's times",
    "cold start": "loading the program and its method, and the first run, each done once",
    "noise": "how much the runs differ: slight, moderate or severe",
    "speedup": "how many times faster than the first",
}
WORK = {
    "work": "FLOPs and bytes of one run, from the shapes",
    "achieved": "FLOPs and bytes a second of the run",
    "of the limit": "the achieved rate as a share of the limit of the machine that is nearest",
    "FLOPs": "floating-point operations of one run, from the shapes; a multiply-add counts as two",
    "FLOPs a byte": "arithmetic intensity: FLOPs for each byte read or written",
    "compute rate": "FLOPs a second that were achieved",
    "memory rate": "bytes a second that were read and written",
    "share of limit": "the achieved rate as a share of the limit of the machine that is nearest",
    "of peak": "the achieved rate as a share of the measured peak of the machine",
    "limit": "what bounds the operator: compute, memory, or the overhead of a call",
    "read": "bytes that are read: inputs and constants",
    "written": "bytes that are written: outputs",
}
BYTES = {
    "size": "bytes that it takes",
    "bytes": "bytes that are read and written, or that it takes",
    "planned": "bytes of the buffer that the memory plan reserves",
    "peak": "bytes of live values at the instruction where they are most",
    "lower bound": "bytes that any plan of these lifetimes needs",
    "unused at the peak": "the part of the planned buffer that no value uses at the peak",
    "offset": "where the thing begins: in its file, or in its planned buffer",
    "weights": "bytes of the constants that the node reads",
    "output": "bytes of the result",
    "logged values": "bytes of logged values among those of the folder",
    "increase over the idle worker": "memory of the process in RAM, beyond that before the run",
}
DELEGATION = {
    "delegate": "a part of the program that a backend runs as one call",
    "boundary": "where tensors enter or leave a delegate",
    "in": "bytes of tensors that enter the delegate in one run",
    "out": "bytes of tensors that leave the delegate in one run",
    "computing": "nodes that compute something; views, copies and constants do not",
    "computing nodes": "nodes that compute something; views, copies and constants do not",
    "delegated": "nodes that run inside of delegates",
    "not delegated": "nodes that run as kernels of the runtime",
    "backend": "who runs the operator: a delegate's backend, or the kernels of the runtime",
    "payload": "bytes of the backend's own program, without constants stored beside it",
    "named data": "bytes of constants that are stored beside the payloads",
    "way": "whether the tensor enters or leaves the delegate",
    "outside": "what is done with the tensor outside of the delegate",
    "verdict": "what a partitioner decided about the node",
}
ERRORS = {
    "max abs": "largest absolute difference of an element from the reference",
    "mean abs": "mean absolute difference of the elements from the reference",
    "SNR dB": "power of the reference over that of the error, in decibels; more is better",
    "top-1": "share of samples whose largest output is at the same place as in the reference",
    "nan": "elements that are NaN, not a number",
    "inf": "elements that are infinite",
    "not finite": "elements that are NaN or infinite",
    "own error": "error that the node itself adds, given the inputs it had in the run",
    "largest error": "largest absolute difference of an element from the reference",
    "clipped": "share of the values beyond the range of the quantization scale",
    "share that differs": "share of the elements that differ from the reference",
    "elements outside": "elements beyond the tolerance of their dtype",
}
JOINS = {
    "join": "how an event was matched to the program",
    "instruction": "matched by instruction index; the record has no node for it",
    "exact": "matched by ids in the files",
    "payload only": "a node of the delegate's payload that no node of the record is known for",
    "inferred": "no id: same operator, matched by position",
    "call only": "only the delegate call it happened in is known",
    "none": "not matched to the program",
    "assumed": "the file does not name the unit of its clock",
    "values logged": "the runs also wrote their values: their times are not the program's",
    "missing": "not in the files; it is never replaced by zero",
}
ESTIMATES = {
    "cycles": "clock cycles of the accelerator for a layer, estimated by the vendor's compiler",
    "of cycles": "the estimated cycles as a share of those of all layers",
    "NPU cycles": "estimated cycles of computing alone",
    "SRAM cycles": "estimated cycles of reading and writing SRAM",
    "DRAM cycles": "estimated cycles of reading and writing DRAM",
    "on-chip flash cycles": "estimated cycles of reading flash on the chip",
    "off-chip flash cycles": "estimated cycles of reading flash beside the chip",
    "access cycles": "estimated cycles of reading and writing a memory over one inference",
    "MACs": "multiply-accumulate operations of a layer, as its hardware executes it",
    "MAC utilization": "MACs as a share of those that the hardware does in the estimated cycles",
    "staging": "bytes of the SRAM that a layer stages its data in",
    "used": "bytes of the memory that are in use at the peak",
    "activations read": "bytes of activations read from a memory in one inference",
    "activations written": "bytes of activations written to a memory in one inference",
    "weights read": "bytes of weights read from a memory in one inference",
    "weights written": "bytes of weights written to a memory in one inference",
}
WORDS = {
    "program": "what a runtime loads, a .pte file: methods, instructions, memory plan, constants",
    "ETRecord": "what a compiler kept beside it: graphs with modules, lines and node names",
    "ETDump": "the trace that a run wrote: times of its events, and where its values lie",
    "debug buffer": "the logged values of a run, which its ETDump names",
    "debug handle": "number of a node that instructions and events refer to through the ETRecord",
    "partition": "nodes that a partitioner gives to one backend; the program calls it a delegate",
    "arena": "a buffer of the memory plan, in which values that live at other times share bytes",
    "latency": "time of one run of a method, without a trace where that was measured",
    "drift": "what other tools call the numeric gap: values of a run beside the recorded program",
    "accuracy": "metrics of outputs over a data set: Evaluate; errors of values: Numeric gap",
    "quantize": "compute with small integers such as int8: chosen in Compile, Recipe and Sweep",
    "calibration": "inputs that show the ranges to quantize; of a machine, measuring its limits",
    "int8": "integers of 8 bits that stand for floats by a scale and a zero point",
    "Android": "a machine that runs programs by adb, added in Run and named there as a device",
    "profile": "times of a run: Timeline, Operators and Overview show them",
}
GROUPS = {
    "Times": TIMES,
    "Work": WORK,
    "Bytes": BYTES,
    "Delegation": DELEGATION,
    "Errors": ERRORS,
    "Estimates of vendors": ESTIMATES,
    "How it is known": JOINS,
}
GLOSSARY = {term: text for group in GROUPS.values() for term, text in group.items()}


def definition(term: str) -> str:
    """Return the definition of a term, empty for one without."""
    return GLOSSARY.get(term, "")


def with_definition(term: str, shown: str) -> str:
    """Return a term as it is shown, with its definition if it has one."""
    found = definition(term)
    return f"{shown}: {found}" if found else shown


def glossary_page() -> str:
    """Return the text of docs/glossary.md."""
    parts = ["# Glossary", "What the figures mean. The window shows the same words on hover."]
    for title, terms in {**GROUPS, "Words": WORDS}.items():
        rows = [f"| {term} | {text} |" for term, text in terms.items()]
        parts.append("\n".join([f"## {title}", "", "| term | meaning |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"
