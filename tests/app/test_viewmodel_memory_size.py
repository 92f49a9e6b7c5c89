"""Memory maps and size maps: every value and every byte once, selections both ways."""

from __future__ import annotations

import numpy as np
import pytest

from devtools_app.viewmodels.memory_map import memory_map, selected_values
from devtools_app.viewmodels.node_facts import node_facts
from devtools_app.viewmodels.size_map import find_duplicates, size_map
from inspector.profile.join_index import join_index
from inspector.size.files import session_sizes
from inspector.size.users import stored_users
from inspector.tables.memory import culprits, memory_plan, value_names
from inspector.tables.selection import Selection, SelectionKind, Units
from inspector.tables.size import part_selection, parts_table
from tests.app.sessions import DATA, chain_session, folders, opened

FILES = sorted(
    str(path.relative_to(DATA))
    for ending in ("pte", "ptd", "bpte")
    for path in [*(DATA / "corpus").rglob(f"*.{ending}"), *(DATA / "old").glob(f"*.{ending}")]
)


@pytest.mark.parametrize("folder", folders())
def test_memory_map_has_every_planned_value(folder: str) -> None:
    session = opened(folder)
    for method in session.methods:
        plan = memory_plan(session, method)
        if plan is None:
            continue
        for place, arena in enumerate(plan.arenas):
            made = memory_map(session, plan, place)
            assert len(made.data.names) == len(arena.values)
            step = arena.peak_instruction
            for number, value in enumerate(arena.values):
                alive = step is not None and value.first <= step <= value.last
                assert bool(made.data.strong[number]) == alive


def test_culprits_of_the_peak_add_up_to_it() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    plan = memory_plan(session, "forward")
    assert plan is not None
    arena = plan.arenas[0]
    table = culprits(session, "forward", arena, peak_only=True)
    sizes = next(column for column in table.columns if column.title == "size")
    assert int(np.sum(sizes.values)) == arena.peak_bytes
    assert culprits(session, "forward", arena, peak_only=False).length == len(arena.values)


def test_culprits_name_source_lines_when_a_record_is_there() -> None:
    folder = "corpus/v1.5.1/convnet_portable"
    for session, wanted in ((opened(folder), True), (opened(f"{folder}/model.pte"), False)):
        plan = memory_plan(session, "forward")
        assert plan is not None
        table = culprits(session, "forward", plan.arenas[0], peak_only=False)
        source = next(column for column in table.columns if column.title == "source")
        assert any(text is not None for text in source.values) == wanted


def test_memory_selection_of_an_instruction_finds_what_it_writes() -> None:
    session = opened("corpus/v1.5.1/tinygpt_xnnpack")
    plan = memory_plan(session, "forward")
    assert plan is not None
    shown, index = memory_map(session, plan, 0), join_index(session, "forward")
    arena = shown.arena
    value = next(value for value in arena.values if value.made_by is not None)
    selection = Selection(SelectionKind.INSTRUCTION, "forward", instruction=value.made_by)
    found = selected_values(shown, selection, index)
    assert value.value in {arena.values[place].value for place in found}
    assert selected_values(shown, Selection(), index) == ()


def test_memory_plan_without_a_program_is_missing() -> None:
    assert memory_plan(opened("corpus/v1.5.1/mm_portable/run.etdp"), "forward") is None


@pytest.mark.parametrize("name", FILES)
def test_parts_of_every_file_sum_to_it(name: str) -> None:
    session = opened(name)
    (sized,) = session_sizes(session)
    assert sized.size is not None, sized.problem
    at = 0
    for part in sized.size.parts:
        assert part.offset == at
        at += part.nbytes
    assert at == session.files[0].size


@pytest.mark.parametrize("folder", folders())
def test_size_map_of_a_session_counts_every_byte_once(folder: str) -> None:
    session = opened(folder)
    made = size_map(session)
    total = sum(file.size for file in session.files)
    assert int(made.data.nbytes[0]) == total
    inner = made.data.nbytes[1:]
    sums = np.bincount(made.data.parent[1:], inner, len(made.data.names))
    parents = np.unique(made.data.parent[1:])
    assert (sums[parents] == made.data.nbytes[parents]).all()
    assert len(made.box) == len(made.parts)
    of_box = np.bincount(made.box, [part.nbytes for _, part in made.parts], len(sums))
    leaves = made.leaf >= 0
    assert (of_box[leaves] == made.data.nbytes[leaves]).all()
    assert of_box[leaves].sum() == total
    assert (made.box[made.leaf[leaves]] == np.flatnonzero(leaves)).all()
    assert parts_table(made.parts, files=True).length == len(made.parts)


def test_part_that_is_a_group_alone_is_one_box() -> None:
    made = size_map(chain_session(3))
    names = made.data.names
    (box,) = [at for at, name in enumerate(names) if name == "instructions[2]"]
    assert made.leaf[box] >= 0
    assert not any(name.endswith(".instructions[2]") for name in names)
    (chain,) = [at for at, name in enumerate(names) if name == "chains[0]"]
    assert made.leaf[chain] < 0, "it holds its instructions beside its own bytes"
    assert any(name.endswith(".chains[0]") for name in names)


def test_places_that_no_part_has_are_found_nowhere() -> None:
    table = parts_table(size_map(chain_session(3)).parts)
    key = table.key(1)
    assert table.finder()(key) == 1
    for place in ("x@0+8", "", "x@99999999999999999999+1", "model@8"):
        assert table.finder()(Selection(SelectionKind.PART, part=place)) == -1


def test_weights_are_called_by_what_reads_them_and_lead_there() -> None:
    session = opened("corpus/v1.5.1/convnet_xnnpack")
    made = size_map(session)
    title = "stem.0.weight"
    assert made.data.names.count(title) == 1
    box = made.data.names.index(title)
    part = made.parts[made.leaf[box]]
    table = parts_table(made.parts, users=stored_users(session))
    column = {each.title: each for each in table.columns}
    row = list(column["part"].values).index(title)
    assert column["stored as"].values[row] == part[1].name
    sheet = node_facts(session, "forward", part_selection(*part), Units())
    assert sheet.title == title
    (used,) = [group for group in sheet.groups if group.title == "Used by"]
    (fact,) = used.facts
    assert fact.value == "delegate 0 Conv2d_1 filter in stem.0"
    assert isinstance(fact.link, Selection)
    assert node_facts(session, "forward", fact.link, Units()).title


def test_duplicates_are_named_with_what_could_go() -> None:
    name = "corpus/v1.5.1/tinygpt_xnnpack"
    made = size_map(opened(name), opened(f"{name}").files[0].path)
    found = find_duplicates(made)
    assert found.count == sum(bool(part.duplicate_of) for _, part in found.parts)
    titles = [column.title for column in parts_table(found.parts).columns]
    assert ("same content as" in titles) == (found.count > 0)


def test_size_map_of_one_operator_works() -> None:
    made = size_map(chain_session(1))
    assert int(made.data.nbytes[0]) == chain_session(1).files[0].size


def test_a_value_has_the_name_of_its_block_in_node() -> None:
    session = opened("corpus/v1.5.1/convnet_xnnpack")
    plan = memory_plan(session, "forward")
    assert plan is not None
    values = [value for arena in plan.arenas for value in arena.values]
    for value, name in zip(values, value_names(session, "forward", values), strict=True):
        chosen = Selection(SelectionKind.VALUE, "forward", value=value.value)
        sheet = node_facts(session, "forward", chosen, Units())
        assert (sheet.title, sheet.subtitle) == (name, f"value {value.value} of forward")
