"""What the stock partitioner leaves of exported programs, asked in a process of its own."""

from __future__ import annotations

import collections
import json
import sys
import warnings

warnings.filterwarnings("ignore")


def main(paths: list[str]) -> int:
    """Print, for each program, how often each operator is left outside of delegates."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import to_edge_transform_and_lower

    answers = []
    for path in paths:
        try:
            edge = to_edge_transform_and_lower(
                torch.export.load(path), partitioner=[XnnpackPartitioner()]
            )
        except Exception as error:  # noqa: BLE001  whatever the stock tool raises is the answer
            answers.append({"error": str(error)})
            continue
        nodes = edge.exported_program().graph.nodes
        targets = [n.target for n in nodes if n.op == "call_function"]
        names = [t.__name__ for t in targets if hasattr(t, "_schema")]
        answers.append({"left": collections.Counter(names)})
    sys.stderr.write("answer:" + json.dumps(answers) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
