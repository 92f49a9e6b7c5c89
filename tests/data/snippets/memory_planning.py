"""Memory planning: inputs and outputs outside the plan, pools of one's own, the trace of the plan."""

import json
import tempfile
from pathlib import Path

import torch
from torch.export import export

from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import greedy, MemoryPlanningAlgorithmSuite
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from executorch.runtime import Runtime
from executorch.util.activation_memory_profiler import generate_memory_trace

numbers = {}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(32, 64)
        self.linear2 = torch.nn.Linear(64, 16)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


torch.manual_seed(3)
net, inputs = Net().eval(), (torch.randn(4, 32),)
eager = net(*inputs)


def planned(config):
    program = to_edge(export(net, inputs)).to_executorch(config)
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    torch.testing.assert_close(method.execute(list(inputs))[0], eager, rtol=1e-4, atol=1e-5)
    plan = program.executorch_program.execution_plan[0]
    numbers[str(len(numbers))] = eager.flatten().tolist()[:4]
    return program, [int(size) for size in plan.non_const_buffer_sizes]


program, default = planned(ExecutorchBackendConfig())
_, outside = planned(
    ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    )
)
assert sum(outside) < sum(default)


class TwoPools(MemoryPlanningPass):
    """What matrix products make is in pool 2, everything else in pool 1."""

    def run(self, graph_module, graph_signature=None):
        for node in graph_module.graph.nodes:
            if node.op != "call_function":
                continue
            spec: TensorSpec = node.meta.get("spec")
            if isinstance(spec, TensorSpec):
                spec.mem_id = 2 if "addmm" in str(node.target) else 1
        return super().run(graph_module, graph_signature)


_, pools = planned(
    ExecutorchBackendConfig(
        memory_planning_pass=TwoPools(
            memory_planning_algo=MemoryPlanningAlgorithmSuite(algo_list=[greedy])
        )
    )
)
assert len(pools) == 3, pools
assert all(size > 0 for size in pools[1:])

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "memory.json"
    generate_memory_trace(
        executorch_program_manager=program,
        chrome_trace_filename=str(path),
        enable_memory_offsets=True,
    )
    trace = json.loads(path.read_text())
    assert [event for event in trace["traceEvents"] if event.get("ph") == "X"]
print(json.dumps(numbers))
