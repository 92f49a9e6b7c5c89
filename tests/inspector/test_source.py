"""Frames of stack traces, the user's own line, and files under source roots."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.files.session import SessionOptions
from inspector.graph.source import SourceFrame, find_file, frames, read_source, user_frame
from inspector.join.node_index import base_operator
from inspector.numerics.traced import KERNEL, instruction_outputs
from inspector.numerics.value_sources import value_sources
from inspector.profile.join_index import join_index
from tests.inspector.sessions import DATA, session

TRACE = """Traceback (most recent call last):
  File "zoo/models.py", line 18, in forward
    x = self.stem(x)
  File "site-packages/torch/nn/modules/conv.py", line 565, in forward
    return self._conv_forward(input, self.weight, self.bias)
"""


def test_frames_are_in_order_with_their_lines() -> None:
    assert frames(TRACE) == (
        SourceFrame("zoo/models.py", 18, "forward", "x = self.stem(x)"),
        SourceFrame(
            "site-packages/torch/nn/modules/conv.py",
            565,
            "forward",
            "return self._conv_forward(input, self.weight, self.bias)",
        ),
    )


def test_users_line_is_the_one_outside_of_libraries() -> None:
    frame = user_frame(TRACE)
    assert frame is not None
    assert frame.label == "zoo/models.py:18"


def test_a_packages_model_has_the_line_of_its_module() -> None:
    layers = [
        ("/srv/compiler/llm/transformers_source.py", 7),
        ("/env/site-packages/transformers/models/olmo/modeling_olmo.py", 93),
        ("/env/site-packages/torch/nn/modules/linear.py", 5),
    ]

    def line_of(count: int) -> int:
        lines = [
            f'  File "{file}", line {line}, in forward\n    x' for file, line in layers[:count]
        ]
        found = user_frame("\n".join(lines))
        assert found is not None
        return found.line

    assert [line_of(count) for count in (1, 2, 3)] == [7, 93, 93]


def test_line_of_a_body_of_control_flow_is_that_of_the_model() -> None:
    made = '  File "<eval_with_key>.90", line 6, in forward\n    child = l_args_3_0_.sin()\n'
    frame = user_frame('  File "model.py", line 40, in forward\n    cond(p, f, g)\n' + made)
    assert frame is not None
    assert frame.label == "model.py:40"
    alone = user_frame(made)
    assert alone is not None
    assert alone.label == "<eval_with_key>.90:6"


def test_library_line_is_better_than_none() -> None:
    frame = user_frame('  File "site-packages/torch/nn/functional.py", line 3, in relu\n    x\n')
    assert frame is not None
    assert frame.line == 3


@pytest.mark.parametrize("text", ["", "no frames here", 'File "x", line many, in y'])
def test_other_text_has_no_frames(text: str) -> None:
    assert frames(text) == ()
    assert user_frame(text) is None


@pytest.mark.parametrize(
    "recorded", ["zoo/models.py", "/home/else/zoo/models.py", "C:\\a\\zoo\\models.py"]
)
def test_file_is_found_by_the_tail_of_its_path(recorded: str, tmp_path: Path) -> None:
    (tmp_path / "zoo").mkdir()
    target = tmp_path / "zoo" / "models.py"
    target.write_text("one\ntwo\n")
    found = find_file(recorded, SessionOptions(source_roots=(str(tmp_path),)))
    assert found == target
    assert read_source(target) == ("one", "two")


def test_root_is_not_left_upwards(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x")
    (tmp_path / "root").mkdir()
    options = SessionOptions(source_roots=(str(tmp_path / "root"),))
    assert find_file("../secret.py", options) is None


def test_mapping_replaces_a_prefix(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x")
    options = SessionOptions(path_mapping={"/build/src": str(tmp_path)})
    assert find_file("/build/src/m.py", options) == tmp_path / "m.py"


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big.py"
    with path.open("wb") as stream:
        stream.truncate(5 << 20)
    with pytest.raises(OSError, match="larger"):
        read_source(path)


def test_planned_values_are_named_by_the_record() -> None:
    found = value_sources(session(DATA / "corpus/v1.5.1/convnet_portable"), "forward")
    names = {source.name for source in found.values()}
    assert {"x", "aten_mean_dim", "aten_relu_default"} <= names
    assert any(source.source.startswith("zoo/models.py:") for source in found.values())


@pytest.mark.parametrize("folder", ["tinygpt_xnnpack", "convnet_xnnpack", "convnet_portable"])
def test_value_sources_give_no_name_to_two_values_of_one_instruction(folder: str) -> None:
    one = session(DATA / f"corpus/v1.5.1/{folder}")
    found = value_sources(one, "forward")
    for touched in join_index(one, "forward").operands:
        names = [found[value].name for value in set(touched.writes) if value in found]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("folder", ["tinygpt_portable", "convnet_portable"])
def test_values_of_one_handle_have_each_the_name_of_what_made_it(folder: str) -> None:
    path = DATA / f"corpus/v1.5.1/{folder}"
    one = session(path)
    program, record = one.program, one.record
    assert program is not None
    assert record is not None
    plan, graph = program.plan("forward"), record.edge_graph("forward")
    assert graph is not None
    operators = {node.name: base_operator(node.target) for node in graph.nodes}
    found = value_sources(one, "forward")
    made: dict[str, list[int]] = {}
    for output in instruction_outputs(program, "forward"):
        if output.value in found and output.value not in plan.inputs:
            made.setdefault(found[output.value].name, []).append(output.instruction)
            operator = operators.get(found[output.value].name)
            assert operator in (None, base_operator(output.operator)) or output.kind != KERNEL
    assert len(made) > 5
    assert all(len(set(steps)) == 1 for steps in made.values())
