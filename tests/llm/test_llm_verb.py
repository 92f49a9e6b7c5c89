"""etscope llm: from a configuration to text, its gap and its plan."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from jsonschema import Draft202012Validator

from compiler.llm.config import read_config
from compiler.llm.model import build_model
from inspector.jobs.generating import LlmGapJob
from inspector.worker import llm_gap
from inspector.worker.interrupting import StopSignal
from inspector.worker.tasks import Task
from tests.architecture.tree import ROOT
from tests.inspector.cli_runs import run
from tests.llm.configs import CACHE, LENGTHS, NANO, SMALL, generated

pytestmark = pytest.mark.slow
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt": {"base": {"params": {**NANO, "vocab_size": 256}}, "model": CACHE},
    "llama": {
        "base": {"model_class": "llama3", "params": {**SMALL, "vocab_size": 256}},
        "model": {**CACHE, "use_sdpa_with_kv_cache": True},
        "backend": {"xnnpack": {"enabled": True}},
    },
    "weights_apart": {
        "base": {"params": {**NANO, "vocab_size": 256}},
        "model": CACHE,
        "export": {**LENGTHS, "foundation_weights_file": "weights"},
    },
    "whole": {"base": {"params": {**NANO, "vocab_size": 256}}},
}


def _data(*words: object) -> dict[str, Any]:
    found = run("llm", *map(str, words), "--format", "json")
    assert found.code == 0, found.err
    whole = json.loads(found.out)
    schema = json.loads((ROOT / "docs/json-schema/llm.json").read_text())
    schema.pop("$ref")
    Draft202012Validator(schema).validate(whole)
    return whole["data"]


@pytest.mark.parametrize("name", CONFIGS)
def test_an_export_generates_as_eager_and_has_no_gap(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({"export": LENGTHS, **CONFIGS[name]}))
    _data("export", path, "-o", tmp_path / "out")
    report = _data("run", tmp_path / "out", "--prompt", "Hello", "--max-new-tokens", 12)
    config = read_config(path)
    module = build_model(config).module
    with torch.no_grad():
        wanted = generated(module, list(b"Hello"), 12, cache=config.model.use_kv_cache)
    assert report["tokens"] == wanted
    assert [one["tokens"] for one in report["calls"]] == [5, *[1] * 11]
    assert report["calls"][-1]["position"] == 15
    by_node = ("--by-node", 2) if name == "whole" else ()
    gap = _data("gap", tmp_path / "out", "--prompt", "Once upon a time there was", *by_node)
    if by_node:
        assert gap["nodes"]["coverage"]["compared"] > 20
        assert [one["first_divergence"] for one in gap["nodes"]["runs"]] == [None, None]
    assert gap["top1_agreement"] == 1
    assert gap["perplexity"] == pytest.approx(gap["reference_perplexity"], rel=1e-3)
    assert gap["max_abs"] < 1e-4


def test_a_text_longer_than_the_context_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({"export": LENGTHS, **CONFIGS["gpt"]}))
    _data("export", path, "-o", tmp_path / "out")
    text = tmp_path / "text.txt"
    text.write_text("Once upon a time there were three mice. " * 4)
    gap = _data("gap", tmp_path / "out", "--text", text, "--tokens", 110)
    assert [one["position"] for one in gap["rows"]] == list(range(110))
    open_ends = [one["position"] for one in gap["rows"] if one["loss"] is None]
    assert open_ends == [47, 95, 109]  # the context has 48 positions
    assert gap["perplexity"] == pytest.approx(gap["reference_perplexity"], rel=1e-3)


def test_quantized_weights_show_in_the_gap_and_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({**CONFIGS["llama"], "export": LENGTHS}))
    changes = ("quantization.qmode=8da4w", "quantization.embedding_quantize='4,32'")
    _data("export", path, *changes, "-o", tmp_path / "out")
    recipe = json.loads((tmp_path / "out/recipe.json").read_text())
    assert "8da4w" in json.dumps(recipe)
    kept = tmp_path / "kept"
    given = ("gap", tmp_path / "out", "--prompt", "Once upon a time there was")
    gap = _data(*given, "--by-node", 2, "-o", kept)
    assert gap["mean_kl"] > 0
    assert gap["first_unexplained"] is None
    nodes = gap["nodes"]
    assert [one["call"] for one in nodes["runs"]] == [0, 1]
    assert all(one["is_float"] for one in nodes["runs"])
    first = nodes["first_divergence"]
    assert first["node"] == nodes["runs"][0]["first_divergence"]
    assert first["module"] == "model.embed_tokens"  # its 4 bits come first
    assert sorted(one.name for one in (kept / "calls").iterdir()) == ["00000.pt", "00001.pt"]
    refused = run("llm", "gap", str(tmp_path / "out"), "--prompt", "Once", "-o", str(kept))
    assert "exists and is not empty" in refused.err
    plain, small = (_data("plan", path, *words)["rows"][0] for words in ((), changes))
    assert small["weights"] < plain["weights"] / 3
    assert small["cache"] == plain["cache"]


def test_variants_are_beside_one_another_and_calls_of_a_text_are_tables(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({**CONFIGS["llama"], "export": LENGTHS}))
    _data("export", path, "-o", tmp_path / "plain")
    _data("export", path, "quantization.qmode=8da4w", "-o", tmp_path / "small")
    words = (tmp_path / "plain", tmp_path / "small", "--prompt", "Once upon a time")
    plain, small = _data("gap", *words)["variants"]
    assert (plain["name"], small["name"]) == (str(tmp_path / "plain"), str(tmp_path / "small"))
    assert plain["reference_perplexity"] == small["reference_perplexity"]
    assert small["mean_kl"] > plain["mean_kl"] >= 0
    shown = run("llm", "gap", *map(str, words)).out
    assert "perplexity" in shown
    assert str(tmp_path / "small") in shown
    kept = tmp_path / "kept"
    report = _data("run", words[0], "--prompt", "Hi", "--max-new-tokens", 4, "-o", kept)
    lines = run("table", "calls", str(kept), "--format", "tsv").out.splitlines()
    assert [line.split("\t")[1] for line in lines[1:]] == ["prefill", *["decode"] * 3]
    assert len(report["calls"]) == 4
    times = run("table", "call-times", str(kept), "--format", "tsv").out
    assert "later tokens" in times
    again = run("llm", "run", str(words[0]), "--prompt", "Hi", "-o", str(kept))
    assert "--force replaces it" in again.err


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("quantization.group_size=7", "quantization.group_size: expected one of 32, 64, 128, 256"),
        ("quantization.modules={lm_head: 5w}", "quantization.modules.lm_head: unknown word '5w'"),
        ("base.tokenizer_path=none.json", "base.tokenizer_path: "),
    ],
)
def test_what_an_export_cannot_take_is_named_before_it_compiles(
    tmp_path: Path, setting: str, sentence: str
) -> None:
    words = ("quantization.qmode=8da4w", setting, "-o", str(tmp_path / "out"))
    found = run("llm", "export", *words)
    assert found.code == 2
    assert sentence in found.err
    assert not (tmp_path / "out").exists()


def test_a_plan_says_which_length_fits(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump({**CONFIGS["llama"], "export": LENGTHS}))
    parameters = sum(p.numel() for p in build_model(read_config(path)).module.parameters())
    parameters += 2 * 16 * 48  # cosine and sine of each position
    found = _data("plan", path, "--memory", 1, "--length", 128, "--length", 2048)
    assert [one["context"] for one in found["rows"]] == [48, 128, 2048]
    assert found["rows"][0]["weights"] == 4 * parameters
    assert found["rows"][1]["cache"] == 2 * 2 * 2 * 16 * 128 * 4
    assert [one["fits"] for one in found["rows"]] == [None, None, False]  # nothing is exported
    assert found["largest"] is None


def test_a_plan_of_an_export_bounds_shorter_lengths_only(tmp_path: Path) -> None:
    path, out = tmp_path / "model.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump({**CONFIGS["llama"], "export": LENGTHS}))
    _data("export", path, "-o", out)
    found = _data("plan", out, "--memory", 100, "--length", 16, "--length", 2048)
    assert [one["fits"] for one in found["rows"]] == [True, True, None]
    assert [one["planned"] is not None for one in found["rows"]] == [False, True, False]
    assert found["largest"] == 48


@pytest.mark.parametrize(
    "setting",
    [
        "export.export_only=true",
        "model.expand_rope_table=true",
    ],
)
def test_settings_without_effect_are_refused(setting: str, tmp_path: Path) -> None:
    ended = run("llm", "export", setting, "-o", tmp_path / "out")
    assert ended.code
    assert setting.partition("=")[0] in ended.err
    assert "not supported" in ended.err


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text("model: {kv: true}\n")
    out, here = tmp_path / "o", Path("x").absolute()
    for words, sentence in (
        (("export", path, "-o", tmp_path / "out"), "model: unknown kv; available:"),
        (("export",), "is missing: it names"),
        (("export", __file__, "-o", tmp_path / "out"), "is not a .yaml or .yml file"),
        (("export", "model.txt", "-o", tmp_path / "out"), "model.txt: no such file or folder"),
        (("export", "quantization.qmode=3w", "-o", tmp_path / "out"), "quantization.qmode: unkn"),
        (("run",), "which model?"),
        (
            ("export", "base.checkpoint=x", "-o", out),
            f"base.checkpoint: {here}: f",
        ),
        (
            ("export", "base.params=/dev/zero", "-o", out),
            "base.params: /dev/zero: expected sizes",
        ),
        (
            ("export", f"debug.profile_path={tmp_path}/x/a", "-o", out),
            "debug.profile_path: /",
        ),
    ):
        found = run("llm", *map(str, words))
        assert found.code, found
        assert sentence in found.err
        assert "Traceback" not in found.err


def test_a_page_shows_time_and_delegation_of_an_export(tmp_path: Path) -> None:
    path, out = tmp_path / "model.yaml", tmp_path / "out"
    methods = [
        {"method_name": "prefill", "export_seq_len": 4},
        {"method_name": "decode", "export_seq_len": 1},
    ]
    more = {"multimethod": {"methods": methods}, "export": LENGTHS}
    path.write_text(yaml.safe_dump({**CONFIGS["llama"], **more}))
    page = tmp_path / "flame.html"
    profiles = [out / f"{one['method_name']}_memory_profile.json" for one in methods]
    report = _data(
        "export", path, f"debug.profile_path={page}", "debug.profile_memory=true", "-o", out
    )
    for profile in profiles:
        events = json.loads(profile.read_text())["traceEvents"]
        assert any("kv_cache" in one["name"] for one in events)
    assert sorted(tmp_path.rglob("*.html")) == [page]
    text = page.read_text("utf-8")
    drawn = re.findall(r"<title>(\w[\w ]*): [^<]*</title>", text)
    assert "export" in drawn
    assert {one["stage"] for one in report["stages"]} <= set(drawn)
    assert {"prefill", "decode"} <= set(drawn)
    widths = [float(one) for one in re.findall(r'<g>.*?width="([\d.]+)"', text)]
    assert 1000 in widths
    assert "delegated nodes" in text
    assert "get_vocab_size, counted" not in text
    shown = run("llm", "export", str(path), "debug.verbose=true", "-o", str(out), "--force")
    assert "report: " in shown.out
    assert (out / "export.html").is_file()
    assert "delegated" in shown.out.lower()


def test_a_program_without_a_cache_ends_where_its_calls_are_full(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    lengths = {"max_seq_length": 12, "max_context_length": 48}
    path.write_text(yaml.safe_dump({**CONFIGS["whole"], "export": lengths}))
    _data("export", path, "-o", tmp_path / "out")
    report = _data("run", tmp_path / "out", "--prompt", "Hello")
    assert len(report["tokens"]) == 12 - 5 + 1  # the last one needs no place
    assert report["ended"] == "length"
    found = run("llm", "run", str(tmp_path / "out"), "--prompt", "a" * 13)
    assert "the prompt has 13 tokens at 0, the context 12 positions" in found.err
    text = "Once upon a time there were mice"
    gap = _data("gap", tmp_path / "out", "--prompt", text)
    assert len(gap["rows"]) == len(text)
    assert gap["max_abs"] < 1e-4


@pytest.mark.parametrize("form", ["text", "json"])
def test_every_action_names_the_file_that_was_given(tmp_path: Path, form: str) -> None:
    whole, bad, out = tmp_path / "text.txt", tmp_path / "bad.yaml", tmp_path / "out"
    whole.write_text("some text")
    bad.write_text("base: {model_class: none_such}\n")
    settings = [f"base.params={json.dumps({**NANO, 'vocab_size': 256})}", "model.use_kv_cache=true"]
    assert run("llm", "export", *settings, "-o", str(out)).code == 0  # a configuration of ours
    program = str(out / "model.pte")
    for words in (("plan",), ("run", "--prompt", "a", "--max-new-tokens", "1"),
                  ("gap", "--text", str(whole), "--tokens", "4")):  # fmt: skip
        found = run("llm", words[0], str(out), *words[1:], "--format", "json")
        assert found.code == 0, found.err
        assert json.loads(found.out)["inputs"] == [program], words
    for words in (("export", bad, "-o", tmp_path / "x"), ("plan", bad),
                  ("gap", out, "--config", bad, "--text", whole)):  # fmt: skip
        found = run("llm", *map(str, words), "--format", form)
        assert found.code, words
        assert f"{bad}: base.model_class: unknown model_type" in found.err
    missing = run("llm", "plan", str(tmp_path / "none"), "--format", form)
    assert missing.code
    assert f"{tmp_path / 'none'}: no such file or folder" in missing.err


def test_a_tokenizer_of_bytes_is_no_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    _data("export", "base.tokenizer_path=bytes", "model.use_kv_cache=true", "-o", out)
    assert _data("run", out, "--prompt", "Hi", "--max-new-tokens", 3)["prompt_tokens"] == 2


@pytest.mark.parametrize("after", [1, 30, 60])
def test_an_end_that_is_asked_for_keeps_the_tokens_so_far(after: int, tmp_path: Path) -> None:
    path, out = tmp_path / "model.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump({"export": LENGTHS, **CONFIGS["gpt"]}))
    _data("export", path, "-o", out)
    stop = StopSignal()

    def hear(kind: str, **content: Any) -> None:
        if kind == "counted" and content.get("done") == after:
            stop.ask()

    text = "Once upon a time there were three mice. " * 4
    job = LlmGapJob(program=str(out / "model.pte"), config=str(path), text=text, tokens=110)
    found = llm_gap.work(job, Task(tmp_path, hear, stop=stop))
    assert len(found["rows"]) == max(after, 2)  # one token has no loss
    assert len(found["tokens"]) == 110
    assert found["perplexity"] == pytest.approx(found["reference_perplexity"], rel=1e-3)
