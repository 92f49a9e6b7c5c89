"""Generation as a job: its text so far, its stop, the tokenizer that a recipe names."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

import pytest
import yaml

from compiler.llm.config import config_of
from compiler.llm.export import export_llm
from inspector.cli import llm
from inspector.jobs.commands import command_of
from inspector.jobs.generating import GenerateJob, GenerateSupervisor
from inspector.jobs.messages import STOP, Ended, Generated, StageProgress
from inspector.jobs.run import JobRun
from inspector.jobs.supervisor import Setup
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.recipe import RECIPE, Recipe
from inspector.recipes.source import Source
from inspector.worker.exporter import AnswerError
from inspector.worker.llm_tokenizer import recipe_tokenizer
from tests.llm.configs import CACHE, NANO


def test_state_has_the_text_and_a_stop_is_accepted_once_it_runs() -> None:
    found = GenerateSupervisor(GenerateJob("m.pte"), Setup())
    assert found.request()[1]["live"]
    assert not found.may_send(STOP)
    for message in (StageProgress("run"), Generated("a", 1), Generated("bc", 2)):
        assert found.note(message) is message
    assert (found.state.text, found.state.calls, found.state.ending) == ("abc", 2, False)
    assert found.may_send(STOP)
    assert found.state.ending
    assert not found.may_send(STOP)


@pytest.mark.slow
def test_a_stopped_generation_keeps_its_text_and_calls(tmp_path: Path) -> None:
    lengths = {"max_seq_length": 64, "max_context_length": 20_000}
    base = {"params": {**NANO, "vocab_size": 256, "block_size": 20_000}}
    program = export_llm(config_of({"base": base, "model": CACHE, "export": lengths}))
    (tmp_path / "model.pte").write_bytes(program.buffer)
    running = JobRun(GenerateJob(str(tmp_path / "model.pte"), "bytes", "Hello", ignore_eos=True))
    try:
        while running.outcome is None and running.state.calls < 3:
            running.take(0.1)
        assert running.send(dict(STOP))
        outcome = running.wait(60)
        running.take()
    finally:
        running.close()
    assert outcome is not None
    assert outcome.ended is Ended.FINISHED, outcome
    assert outcome.result["ended"] == "stopped"
    assert outcome.result["text"] == running.state.text
    assert 3 <= len(outcome.result["calls"]) < 19_000


def test_the_tokenizer_is_that_of_the_configuration_beside_it(tmp_path: Path) -> None:
    program = tmp_path / "out" / "model.pte"
    program.parent.mkdir()
    assert recipe_tokenizer(str(program)) == ""
    config = tmp_path / "model.yaml"
    recipe = program.parent / RECIPE
    for base, wanted in (
        ({"tokenizer_path": "words.bin"}, tmp_path / "words.bin"),
        ({"tokenizer_path": str(tmp_path / "other.json")}, tmp_path / "other.json"),
        ({"model_class": "llama3", "checkpoint": str(tmp_path / "hf")}, tmp_path / "hf"),
        ({"model_class": "llama3", "checkpoint": str(program.parent)}, ""),
        ({"tokenizer_path": "bytes"}, "bytes"),
        ({}, ""),
    ):
        for name in ("words.bin", "other.json"):
            (tmp_path / name).touch()
        (tmp_path / "hf").mkdir(exist_ok=True)
        (tmp_path / "hf" / "tokenizer.json").touch()
        config.write_text(yaml.safe_dump({"base": base}))
        recipe.write_text(Recipe(CompileJob(Source(str(config)))).text)
        assert recipe_tokenizer(str(program)) == str(wanted)
    config.write_text("base: {tokenizer_path: gone.json}\n")
    with pytest.raises(AnswerError, match=r"base\.tokenizer_path .*gone\.json, which"):
        recipe_tokenizer(str(program))
    config.write_text("base: {nothing: 1}\n")
    with pytest.raises(AnswerError, match="unknown nothing"):
        recipe_tokenizer(str(program))


@pytest.mark.parametrize(
    "job",
    [
        GenerateJob("m.pte", prompt="Once upon"),
        GenerateJob("m.pte", "bytes", "--x", True, "Be kind", 7, 0.7, 0.9, 5, 1, True, True),
        GenerateJob("m.pte", prompt="c", parts=(("text", "a"), ("image", "b.pt"))),
        GenerateJob("m.pte", data_files=("a.ptd",), threads=2, engine="torch", libraries=("o.py",)),
    ],
)
def test_the_command_of_a_generation_generates_the_same(job: GenerateJob) -> None:
    words = shlex.split(command_of(job))
    parser = argparse.ArgumentParser(allow_abbrev=False)
    llm.add_arguments(parser)
    found = parser.parse_args(words[2:])
    assert (words[1], found.action, found.words) == ("llm", "run", ["m.pte"])
    names = ("prompt", "tokenizer", "chat", "system", "temperature", "top_p", "seed", "num_bos")
    more = ("ignore_eos", "warmup", "threads", "engine")
    for name in (*names, *more):
        assert getattr(found, name) == getattr(job, name), name
    assert tuple(found.parts[: len(job.parts)]) == job.parts
    assert (found.max_new_tokens or -1) == job.max_new_tokens
    assert (tuple(found.ptd), tuple(found.libraries)) == (job.data_files, job.libraries)
