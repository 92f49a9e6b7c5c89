"""The configuration of an export: groups and names of ExecuTorch's ``LlmConfig``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import yaml

from compiler.errors import CompileError
from compiler.llm.compat.backends import BackendConfig, unavailable
from compiler.llm.metadata import MetadataError, metadata_values
from compiler.llm.quantization import QuantizationConfig, quantization_problems
from schema.objects.codec import ContentError, from_json
from schema.recipe.assignments import AssignmentError, parse_path
from schema.recipe.tokenizers import BYTE_TOKENIZER

NANO_GPT = "nano_gpt"
HERE = "."  # no folder of its own
WEIGHT_FILES = ("foundation_weights_file", "lora_weights_file")
_FILE_NAME = re.compile(r"(?!\.)[^/\\:\x00-\x1f]{1,200}")
_MOST_ENTRIES = 100_000  # of a configuration; aliases of YAML can name each other
_NEXT_SETTING = re.compile(r",(?=\s*\w+(?:\.\w+)+=)")


class LlmConfigError(CompileError, ValueError):
    """An invalid configuration; the message begins with the path of the key."""


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """An adapter; names as in ExecuTorch.

    Attributes:
        adapter_checkpoint: a safetensors file, or a folder with one and ``adapter_config.json``
        adapter_config: a JSON file with rank, alpha and targets; default: that beside the weights
        lora_rank: without such a file; 0 takes it from the weights
        lora_alpha: likewise; 0 for the rank
        target_modules: layers that must have weights; empty for those that have some
    """

    adapter_checkpoint: str
    adapter_config: str | None = None
    lora_rank: int = 0
    lora_alpha: int = 0
    target_modules: tuple[str, ...] = ()
    adapter_quant: Literal["int8", "fp16", "fp32"] | None = None


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """The model and its weights.

    Attributes:
        model_class: a family, or ``nano_gpt``; empty takes it from the checkpoint
        params: a JSON file of sizes, or the sizes themselves
        checkpoint: a folder with ``config.json`` and safetensors, or one safetensors file; None for
            random weights
        tokenizer_path: a file, a folder, or ``bytes``
        seed: of random weights
    """

    model_class: str = NANO_GPT
    params: str | dict[str, Any] | None = None
    checkpoint: str | None = None
    lora_config: LoraConfig | None = None
    tokenizer_path: str | None = None
    metadata: str | dict[str, Any] | None = None
    use_lora: int = 0
    preq_mode: str | None = None
    preq_group_size: int = 32
    preq_embedding_quantize: str = "8,0"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """How attention, cache and sequence are exported."""

    dtype_override: Literal["fp32", "fp16", "bf16"] = "fp32"
    enable_dynamic_shape: bool = True
    use_shared_embedding: bool = False
    use_sdpa_with_kv_cache: bool = False
    expand_rope_table: bool = False
    use_attention_sink: str | None = None
    output_prune_map: str | None = None
    input_prune_map: str | None = None
    use_kv_cache: bool = False
    quantize_kv_cache: bool = False
    static_quantize_kv_cache: bool = False
    static_quantize_kv_cache_scale: float = 1.0 / 127.0
    local_global_attention: tuple[int, ...] | None = None
    use_moe_quantized_op: bool = False


@dataclass(frozen=True, slots=True)
class ExportConfig:
    """Lengths and files.

    Attributes:
        output_dir: folder of the export where the command line names none
        foundation_weights_file: name of a ``.ptd`` in that folder
        lora_weights_file: likewise
    """

    max_seq_length: int = 128
    max_context_length: int = 128
    output_dir: str = HERE
    output_name: str | None = None
    so_library: str | None = None
    export_only: bool = False
    foundation_weights_file: str | None = None
    lora_weights_file: str | None = None


@dataclass(frozen=True, slots=True)
class DebugConfig:
    """Further output files.

    Attributes:
        profile_memory: ``memory_profile.json`` in the folder of the export, a Chrome trace of what
            is live at each instruction; one for each method where there are several
        profile_path: a page with the stages of the export as a flame graph, and its delegation
        verbose: that page in the folder of the export, and delegation by operator on the terminal
    """

    profile_memory: bool = False
    profile_path: str | None = None
    generate_etrecord: bool = False
    generate_full_logits: bool = False
    verbose: bool = False


@dataclass(frozen=True, slots=True)
class MethodConfig:
    """One method of a program with several."""

    method_name: str
    lora_config: LoraConfig | None = None
    export_seq_len: int | None = None


@dataclass(frozen=True, slots=True)
class MultimethodConfig:
    """Several methods in one program."""

    methods: tuple[MethodConfig, ...] = ()
    share_mutable_buffers: bool = False


@dataclass(frozen=True, slots=True)
class LlmConfig:
    """An export of a language model."""

    base: BaseConfig = field(default_factory=BaseConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    debug: DebugConfig = field(default_factory=DebugConfig)
    multimethod: MultimethodConfig = field(default_factory=MultimethodConfig)
    quantization: QuantizationConfig = field(default_factory=QuantizationConfig)
    backend: BackendConfig = field(default_factory=BackendConfig)

    def __post_init__(self) -> None:
        """Check constraints that the types do not express.

        Raises: LlmConfigError
        """
        if found := [f"{path}: {sentence}" for path, sentence in _problems(self)]:
            raise LlmConfigError("; ".join(found))


def read_config(path: str | Path, settings: Sequence[str] = ()) -> LlmConfig:
    """Return the configuration in a YAML file; relative paths in it begin at its folder.

    Args:
        path: of the file
        settings: changes, as ``model.use_kv_cache=true``

    Raises: LlmConfigError, OSError
    """
    place = Path(path)
    try:
        content: object = yaml.safe_load(place.read_text("utf-8"))
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise LlmConfigError(f"{path}: not a YAML file: {str(error).splitlines()[0]}") from error
    return config_of({} if content is None else content, str(path), settings, place.parent)


def split_settings(text: str) -> tuple[str, ...]:
    """Return the settings in a list separated by commas, which their values may contain."""
    return tuple(one.strip() for one in _NEXT_SETTING.split(text) if one.strip())


def config_of(
    content: object, place: str = "config", settings: Sequence[str] = (), folder: Path | None = None
) -> LlmConfig:
    """Return the configuration in a mapping.

    Args:
        content: groups with their keys
        place: begins the message of an error
        settings: changes, as ``model.use_kv_cache=true``
        folder: begin of relative paths; None leaves them

    Raises: LlmConfigError
    """
    if not isinstance(content, dict):
        raise LlmConfigError(f"{place}: expected groups such as base and model")
    groups = cast("dict[str, Any]", content)
    for text in settings:
        _set(groups, text, place)
    try:
        if _expanded(groups, {}) > _MOST_ENTRIES:
            raise LlmConfigError(f"{place}: more than {_MOST_ENTRIES:,} entries")
        found = from_json(groups, LlmConfig, place, closed=True)
    except ContentError as error:
        raise LlmConfigError(str(error)) from error
    except RecursionError as error:
        raise LlmConfigError(f"{place}: too many levels, or one that contains itself") from error
    return found if folder is None else _placed(found, folder)


def _expanded(content: object, known: dict[int, int]) -> int:
    """Return the number of entries in a YAML value, where each alias counts as what it names.

    Raises: RecursionError for one that contains itself
    """
    if isinstance(content, dict):
        parts = list(cast("dict[object, object]", content).values())
    elif isinstance(content, list):
        parts = cast("list[object]", content)
    else:
        return 1
    place = id(cast("object", content))
    if place not in known:
        known[place] = 1 + sum(_expanded(one, known) for one in parts)
    return known[place]


def _set(groups: dict[str, Any], text: str, place: str) -> None:
    """Set the value of ``path=value`` in nested groups."""
    try:
        keys, value = parse_path(text, "GROUP.NAME=VALUE as model.use_kv_cache=true", ".")
    except AssignmentError as error:
        raise LlmConfigError(str(error)) from error
    path, at = ".".join(keys), groups
    for key in keys[:-1]:
        below = at.setdefault(key, {})
        if not isinstance(below, dict):
            raise LlmConfigError(f"{place}: {path}: {key} is not a group")
        at = cast("dict[str, Any]", below)
    try:
        at[keys[-1]] = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise LlmConfigError(f"{place}: {path}: {value!r} is not a YAML value") from error


def _placed(config: LlmConfig, folder: Path) -> LlmConfig:
    """Return a configuration whose relative paths begin at a folder."""

    def at(path: str | None) -> str | None:
        return path if not path else str(folder / path)

    def lora_at(lora: LoraConfig | None) -> LoraConfig | None:
        if lora is None:
            return None
        weights = str(folder / lora.adapter_checkpoint)
        return replace(lora, adapter_checkpoint=weights, adapter_config=at(lora.adapter_config))

    base, tokenizer = config.base, config.base.tokenizer_path
    params = at(base.params) if isinstance(base.params, str) else base.params
    base = replace(
        base,
        params=params,
        checkpoint=at(base.checkpoint),
        tokenizer_path=tokenizer if tokenizer == BYTE_TOKENIZER else at(tokenizer),
        lora_config=lora_at(base.lora_config),
    )
    several = config.multimethod
    methods = tuple(replace(one, lora_config=lora_at(one.lora_config)) for one in several.methods)
    export = config.export
    if export.output_dir != HERE:
        export = replace(export, output_dir=str(folder / export.output_dir))
    several = replace(several, methods=methods)
    return replace(config, base=base, export=export, multimethod=several)


def adapters_of(config: LlmConfig) -> dict[str, LoraConfig]:
    """Return the adapters of a configuration by their path in it."""
    found = {
        f"multimethod.methods[{at}].lora_config": one.lora_config
        for at, one in enumerate(config.multimethod.methods)
    }
    found["base.lora_config"] = config.base.lora_config
    return {path: one for path, one in found.items() if one is not None}


def _problems(config: LlmConfig) -> Iterator[tuple[str, str]]:
    """Yield what contradicts itself, and what has no counterpart here, with its path."""
    model, export = config.model, config.export
    if not -(1 << 63) <= config.base.seed < 1 << 64:
        yield "base.seed", f"expected a number of 64 bits, found {config.base.seed}"
    for name in ("max_seq_length", "max_context_length"):
        if getattr(export, name) < 1:
            yield f"export.{name}", f"expected at least 1, found {getattr(export, name)}"
    if export.max_context_length < export.max_seq_length:
        words = f"{export.max_context_length} is less than max_seq_length {export.max_seq_length}"
        yield "export.max_context_length", words
    for name in ("quantize_kv_cache", "use_sdpa_with_kv_cache", "local_global_attention"):
        if getattr(model, name) and not model.use_kv_cache:
            yield f"model.{name}", "needs model.use_kv_cache: true"
    yield from _window_problems(model)
    try:
        metadata_values(config.base.metadata)
    except MetadataError as error:
        yield f"base.metadata{error.path}", str(error)
    for name, words in quantization_problems(config.quantization):
        yield f"quantization.{name}", words
    yield from _file_problems(export)
    yield from _adapter_problems(config)
    yield from _method_problems(config)
    yield from _without_counterpart(config)


def _file_problems(export: ExportConfig) -> Iterator[tuple[str, str]]:
    """Yield names of weight files that are not those of a file in the folder of the export."""
    names = {name: getattr(export, name) for name in WEIGHT_FILES}
    for name, given in names.items():
        if given is not None and not _FILE_NAME.fullmatch(given):
            words = f"expected the name of a file in the folder of the export, found {given!r:.80}"
            yield f"export.{name}", words
    foundation, adapter = (one and one.removesuffix(".ptd") for one in names.values())
    if foundation and foundation == adapter:
        yield f"export.{WEIGHT_FILES[1]}", f"expected another file than {WEIGHT_FILES[0]}"
    if export.output_name is not None:
        yield "export.output_name", "not supported: the program is model.pte in its folder"


def _window_problems(model: ModelConfig) -> Iterator[tuple[str, str]]:
    if model.use_attention_sink is not None:
        sizes = model.use_attention_sink.split(",")
        if model.local_global_attention is not None:
            yield (
                "model.use_attention_sink",
                "excludes model.local_global_attention: set one of them",
            )
        if len(sizes) != 2 or not all(one.strip().isdecimal() for one in sizes):
            found = model.use_attention_sink
            yield "model.use_attention_sink", f"expected SINK,WINDOW, found {found!r}"
        elif int(sizes[1]) < 1:
            yield "model.use_attention_sink", "expected a window of at least 1"
        elif not model.use_kv_cache:
            yield "model.use_attention_sink", "needs model.use_kv_cache: true"
    windows = model.local_global_attention
    if windows is not None and (not windows or min(windows) < 0):
        found = f"expected windows, 0 for none, found {list(windows)}"
        yield "model.local_global_attention", found


def _method_problems(config: LlmConfig) -> Iterator[tuple[str, str]]:
    methods, longest = config.multimethod.methods, config.export.max_context_length
    names = [one.method_name for one in methods]
    if len(set(names)) != len(names):
        yield "multimethod.methods", f"names occur twice: {', '.join(names)}"
    for at, one in enumerate(methods):
        place, length = f"multimethod.methods[{at}]", one.export_seq_len
        if not one.method_name.isidentifier():
            yield f"{place}.method_name", f"expected a name, found {one.method_name!r}"
        if length is not None and not 1 <= length <= longest:
            words = f"expected 1 to export.max_context_length {longest}, found {length}"
            yield f"{place}.export_seq_len", words


def _adapter_problems(config: LlmConfig) -> Iterator[tuple[str, str]]:
    adapters = adapters_of(config)
    for path, one in adapters.items():
        if one.adapter_quant not in (None, "fp32"):
            yield f"{path}.adapter_quant", "not supported"
    if config.export.lora_weights_file and not adapters:
        yield "export.lora_weights_file", "needs base.lora_config"


def _without_counterpart(config: LlmConfig) -> Iterator[tuple[str, str]]:
    for path in _UNSUPPORTED:
        group, _, name = path.partition(".")
        part = getattr(config, group)
        default = next(one.default for one in fields(part) if one.name == name)
        if getattr(part, name) != default:
            yield path, "not supported"
    if config.model.use_shared_embedding:
        words = "needs torchao's low-bit kernels for Arm (qmode torchao:…), which are not available"
        yield "model.use_shared_embedding", f"{words}; tied weights are stored once without it"
    yield from unavailable(config.backend)


_UNSUPPORTED = (
    "base.use_lora",
    "base.preq_mode",
    "model.expand_rope_table",
    "model.output_prune_map",
    "model.input_prune_map",
    "model.static_quantize_kv_cache",
    "model.use_moe_quantized_op",
    "export.export_only",
    "export.so_library",
    "quantization.use_spin_quant",
    "quantization.use_qat",
    "quantization.calibration_tasks",
    "quantization.calibration_limit",
    "quantization.calibration_seq_length",
)


def metadata_of(config: LlmConfig) -> dict[str, Any]:
    """Return the constant methods that the configuration adds."""
    return metadata_values(config.base.metadata)
