"""Tokenizers and chat templates that come with a model from anywhere."""

from __future__ import annotations

import itertools
import json
import random
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.errors import ExecutionError
from runtime.llm import GenerationConfig, TextRunner, chat
from runtime.llm.chat import ChatError, chat_prompt, chat_template
from runtime.llm.tokenizers import TokenizerError, load_tokenizer
from tests.llm.tokenizer_files import json_files, ranks_file

MESSAGES = [{"role": "system", "content": "be <b>"}, {"role": "user", "content": "hi"}]
BYTES = [b"<unk>", b"<s>", b"</s>", *(f"<0x{one:02X}>".encode() for one in range(256))]


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("{% generation %}{{ messages[1].content }}{% endgeneration %}!", "hi!"),
        ("{% for m in messages %}{% generation %}{{ m.role }},{% endgeneration %}{% endfor %}",
         "system,user,"),
        ("{{ {'b': 1, 'a': '<'} | tojson(separators=(',', ':'), sort_keys=True) }}",
         '{"a":"<","b":1}'),
        ("{{ messages[0] | tojson(ensure_ascii=True, indent=1) }}",
         '{\n "role": "system",\n "content": "be <b>"\n}'),
        ("{{ image_token }}{{ '-' * 3 }}{{ 2 ** 5 }}{{ 2 * 'ab' }}", "<img>---32abab"),
    ],
)  # fmt: skip
def test_templates_have_what_those_of_published_models_use(template: str, wanted: str) -> None:
    assert chat_prompt(template, {"image_token": "<img>"}, MESSAGES) == wanted


_LOOP = "{% for _ in range(99999) %}"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "RecursionError"),
        ("{% for i in range(1000000000) %}{% endfor %}", "Range too big"),
        ("{{ 9 ** (9 ** 9) }}", "takes more than 0.2 seconds"),
        ("{% for i in range(50) %}{{ 'a' * 999999 }}{% endfor %}", "16,000,000 letters"),
        ("{{ raise_exception('roles must\\nalternate') }}", "refuses: roles must alternate$"),
        ("{{ raise_exception('long' * 9999) }}", "refuses: (long){75}$"),
        ("{% generation %}", "endgeneration"),
        (f"{_LOOP}{_LOOP}{{% endfor %}}{{% endfor %}}", "takes more than 0.2 seconds"),
        (f"{_LOOP}{{% set x = range(99999)|map('abs')|list %}}{{% endfor %}}", "0.2 seconds"),
        (f"{_LOOP}{{{{ range(99999)|sum }}}}{{% endfor %}}", "0.2 seconds"),
    ],
)
def test_a_template_that_fails_is_one_sentence(
    template: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat, "_MOST_SECONDS", 0.2 if "0.2" in words else 60.0)
    with pytest.raises(ChatError, match=words) as found:
        chat_prompt(template, {}, MESSAGES)
    assert len(str(found.value)) < 500


def _growing(start: str, grown: str) -> str:
    loop = f"{{% for i in range(99) %}}{{% set n.x = {grown} %}}{{% endfor %}}"
    return f"{{% set n = namespace(x={start}) %}}{loop}"


_LARGE = [
    "{{ 'a' * 10 ** 10 }}",
    "{{ (10 ** 10 * [1])|length }}",
    "{{ ('%999999999d' % 3)|length }}",
    "{{ '%.999999999f' % 3.0 }}",
    "{{ '%999999999s'|format('x')|length }}",
    "{{ ('{:>999999999}'.format(3))|length }}",
    "{{ '{x:>999999999}'.format_map({'x': 1})|length }}",
    "{{ 'a'|center(999999999)|length }}",
    "{{ 'a'.ljust(999999999).zfill(3)|length }}",
    "{{ '\t'.expandtabs(999999999)|length }}",
    "{{ ('a' * 9999999)|replace('a', 'b' * 9999999) }}",
    "{{ ('a' * 99999)|join('b' * 9999999) }}",
    "{{ (['a' * 9999999] * 9999)|join }}",
    "{{ ('a\n' * 999999)|indent('b' * 99999) }}",
    "{{ [1]|tojson(indent=999999999)|length }}",
    "{{ (['abc'] * 999)|map('center', 9999999)|list|length }}",
    "{{ ('a' * 999999).translate({97: 'b' * 99999})|length }}",
    "{% set x %}{% for i in range(9999) %}{{ 'a' * 999999 }}{% endfor %}{% endset %}",
    "{% set l = 'a' * 60000000 %}{{ l ~ l ~ l ~ l }}",
    "{{ (range(99999)|list * 9999)|length }}",
    *[_growing("'ab'", grown) for grown in ("n.x ~ n.x", "n.x + n.x", "n.x * 8")],
    _growing("[]", "n.x + ['a' * 9999999 ~ i]"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the parent looks from time to time")
@pytest.mark.parametrize("template", _LARGE)
def test_a_template_takes_little_memory(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "_LOOK", 60.0)  # the system's limit alone
    with pytest.raises(ChatError, match="needs more than 200 MB of memory"):
        chat_prompt(template, {}, MESSAGES)


def test_a_template_without_the_limit_of_the_system_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds = tmp_path / "holds.py"
    holds.write_text("import time; kept = bytes(300_000_000).replace(b'\\0', b'1'); time.sleep(60)")
    monkeypatch.setattr(chat, "_CHILD", holds)
    monkeypatch.setattr(chat, "_MOST_SECONDS", 60.0)
    with pytest.raises(ChatError, match="needs more than 200 MB of memory"):
        chat_prompt("", {}, MESSAGES)


def test_a_template_whose_process_ends_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = tmp_path / "ends.py"
    ends.write_text("import os; os._exit(5)")
    monkeypatch.setattr(chat, "_CHILD", ends)
    with pytest.raises(ChatError, match="renders the chat template ended with code 5"):
        chat_prompt("", {}, MESSAGES)


DAMAGED: dict[str, tuple[str, bytes]] = {
    "a list": ("tokenizer_config.json", b"[1]"),
    "a number": ("tokenizer_config.json", b"3"),
    "no JSON": ("tokenizer_config.json", b"{"),
    "no text": ("tokenizer_config.json", b'{"a": "\xff"}'),
    "levels": ("tokenizer_config.json", b"[" * 100_000),
    "no letters": ("chat_template.jinja", b"\xff\xfe"),
    "entries": ("tokenizer_config.json", b'{"chat_template": [1, {"name": ["a"]}]}'),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_with_a_template_is_named(tmp_path: Path, name: str) -> None:
    file, data = DAMAGED[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(ChatError, match="neither" if name == "entries" else file):
        chat_template(tmp_path)


@pytest.mark.parametrize("name", [name for name in DAMAGED if DAMAGED[name][0][0] == "t"][:-1])
@pytest.mark.parametrize("make", [json_files, ranks_file])
def test_a_damaged_file_beside_a_tokenizer_is_named(
    tmp_path: Path, make: Callable[[Path], Path], name: str
) -> None:
    made = make(tmp_path)
    file, data = DAMAGED[name]
    (tmp_path / file).write_bytes(data)
    with pytest.raises(TokenizerError, match=file):
        load_tokenizer(made)


def test_the_template_of_a_processor_is_read(tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "{{ boi_token }}x"}))
    config = {"boi_token": {"content": "<img>"}, "bos_token": 5}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    template, tokens = chat_template(tmp_path)
    assert chat_prompt(template, tokens, MESSAGES) == "<img>x"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("normalizer", {"type": "Replace", "pattern": {"String": ""}, "content": "xx"}),
        ("normalizer", {"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        (
            "pre_tokenizer",
            {
                "type": "Split",
                "pattern": {"Regex": "(a+)+$"},
                "behavior": "Isolated",
                "invert": False,
            },
        ),
    ],
    ids=["replacement", "table", "pattern"],
)
def test_a_rule_at_which_the_library_gives_up_is_one_sentence(
    tmp_path: Path, name: str, rule: dict[str, object]
) -> None:
    path = json_files(tmp_path) / "tokenizer.json"
    content: Any = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**content, name: rule}))
    with pytest.raises(TokenizerError, match=r"^[^\n]*tokenizer\.json: "):
        load_tokenizer(tmp_path).encode("hello " + "a" * 3000 + "!")


@pytest.mark.parametrize("pattern", ["((", "(?:a|a)*(?<=b)"])
def test_a_pattern_of_ranks_that_fails_is_one_sentence(tmp_path: Path, pattern: str) -> None:
    path = ranks_file(tmp_path, pat_str=pattern)
    with pytest.raises(TokenizerError, match=r"^[^\n]*tokenizer\.model: "):
        load_tokenizer(path).encode("a" * 3000)


def test_a_text_is_neither_cut_nor_filled_as_batches_in_training_were(tmp_path: Path) -> None:
    path = json_files(tmp_path) / "tokenizer.json"
    plain = load_tokenizer(tmp_path).encode("Once upon a time")
    content: Any = json.loads(path.read_text("utf-8"))
    content["truncation"] = {
        "direction": "Right",
        "max_length": 2,
        "strategy": "LongestFirst",
        "stride": 0,
    }
    content["padding"] = {
        "strategy": {"Fixed": 64},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "<s>",
    }
    path.write_text(json.dumps(content), "utf-8")
    assert load_tokenizer(tmp_path).encode("Once upon a time") == plain
    assert len(plain) > 2


def test_ends_are_tokens_and_names_come_from_the_map_of_special_tokens(tmp_path: Path) -> None:
    json_files(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "special_tokens_map.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    ends = '{"eos_token_id": [true, 3, -1, 9e9, "4"]}'
    (tmp_path / "generation_config.json").write_text(ends)
    own = load_tokenizer(tmp_path)
    assert (own.bos, own.eos) == (0, (1, 3))
    assert own.decode([-1, 1 << 40]) == ""


def _llama2c(folder: Path, words: list[bytes], scores: list[float] | None = None) -> Path:
    data = struct.pack("<i", max(map(len, words)))
    for at, word in enumerate(words):
        data += struct.pack("<fi", scores[at] if scores else float(at), len(word)) + word
    path = folder / "tokenizer.bin"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("words", [[b"a", b"b", b" "], [b"a", b"b"], []])
def test_a_letter_without_a_token_is_named(tmp_path: Path, words: list[bytes]) -> None:
    own = load_tokenizer(_llama2c(tmp_path, [*BYTES[:3], *words]))
    with pytest.raises(TokenizerError, match="no token for"):
        own.encode("abz")


def test_a_piece_that_looks_like_a_byte_is_a_text(tmp_path: Path) -> None:
    own = load_tokenizer(_llama2c(tmp_path, [*BYTES, b"<0xZZ>", b" "]))
    assert own.decode([3 + 65, 259, 3 + 66]) == "A<0xZZ>B"


def _merged(words: list[bytes], scores: list[float], text: str) -> list[int]:
    """Return tokens as llama2.c merges them: the best pair, the leftmost of equal ones, again."""
    ids = {word: at for at, word in enumerate(words)}
    found = [ids[letter.encode()] for letter in f" {text}"]
    while True:
        joined = [ids.get(words[a] + words[b]) for a, b in itertools.pairwise(found)]
        known = [at for at, one in enumerate(joined) if one is not None]
        if not known:
            return found
        best = max(known, key=lambda at: (scores[joined[at] or 0], -at))
        found[best : best + 2] = [joined[best] or 0]


@pytest.mark.parametrize("seed", range(12))
def test_pairs_merge_in_the_order_of_their_scores(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    made = {bytes(draw.choices(b"ab ", k=draw.randint(2, 5))) for _ in range(20)}
    words = [*BYTES, b" ", b"a", b"b", *sorted(made)]
    scores = [float(draw.randint(0, 5)) for _ in words]
    own = load_tokenizer(_llama2c(tmp_path, words, scores))
    for count in range(1, 40):
        text = "".join(draw.choices("ab ", k=count))
        assert own.encode(text) == _merged(words, scores, text)


def test_a_long_text_is_merged_in_its_own_time(tmp_path: Path) -> None:
    letters = [bytes([one]) for one in range(32, 127)]
    own = load_tokenizer(_llama2c(tmp_path, [*BYTES, *letters, b"th", b"he", b"the", b" the"]))
    text = "then the other there " * 2500
    start = time.process_time()
    assert own.decode(own.encode(text)) == text
    assert time.process_time() - start < 10  # some 0.2; each pair looked at again took minutes


@pytest.mark.parametrize("given", ["prompt", "stop"])
def test_bytes_of_a_command_line_that_are_no_text_are_named(tmp_path: Path, given: str) -> None:
    runner = TextRunner(tmp_path / "none.pte", "bytes")
    runner.load = lambda: None  # nothing of the program is needed
    stop = ("a\udcff",) if given == "stop" else ()
    with pytest.raises(ExecutionError, match=f"{given} is not a text: at letter 1"):
        runner.generate("a\udcff" if given == "prompt" else "a", GenerationConfig(stop=stop))


def test_texts_are_joined_as_the_library_joins_them() -> None:
    template = "{{ 'a' ~ none ~ 1.5 ~ nothing ~ [1] ~ messages[0].role }}{{ [1] + [2] }}{{ 1 + 2 }}"
    assert chat_prompt(template, {}, MESSAGES) == "aNone1.5[1]system[1, 2]3"
