"""llm: language models, from a configuration to generated text."""

from __future__ import annotations

from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from inspector.cli import llm_export, llm_gap, llm_plan, llm_run
from inspector.cli.answer import Answer
from inspector.cli.job_runs import (
    add_engine,
    add_libraries,
    add_timeout,
    count,
    count_or_none,
    not_negative,
)
from inspector.cli.options import add_folder_output

_ACTIONS = {
    "export": llm_export.run,
    "run": llm_run.run,
    "gap": llm_gap.run,
    "plan": llm_plan.run,
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("action", choices=_ACTIONS, help="what to do")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="CONFIG|MODEL [GROUP.NAME=VALUE…]",
        help="of export and plan: a .yaml file with the groups of LlmConfig, and settings that"
        " change it; without a file a small GPT with random weights. Of run and gap: the folder"
        " of an export, or its .pte; gap takes several",
    )
    add_folder_output(
        parser,
        "folder for the program, required by export; of run: for a report of its calls;"
        " of gap: for the tokens that were read, which the next call goes on with;"
        " of gap --by-node: for the values of each call",
    )
    _add_text(parser)
    _add_plan(parser)
    parser.add_argument(
        "--ptd",
        action="append",
        default=[],
        metavar="FILE",
        help="external constants; default: those of the folder; may be repeated",
    )
    parser.add_argument("--threads", type=count, default=1, metavar="N", help="default: 1")
    add_libraries(parser)
    add_engine(parser)
    add_timeout(parser)


class _PromptPart(Action):
    """Appends an option to the parts of a prompt, in the order in which they are given."""

    @override
    def __call__(
        self,
        parser: ArgumentParser,
        namespace: Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        kind = "text" if self.dest == "prompt" else self.dest
        namespace.parts = [*namespace.parts, (kind, values)]
        setattr(namespace, self.dest, values)


def _add_prompt(parser: ArgumentParser) -> None:
    parser.set_defaults(parts=[])
    parser.add_argument(
        "--prompt",
        default="",
        action=_PromptPart,
        metavar="TEXT",
        help="of run and gap; of run with images or audio it may be repeated",
    )
    for name in ("--image", "--audio"):
        parser.add_argument(
            name,
            action=_PromptPart,
            default="",
            metavar="FILE",
            help="of run: a tensor (.pt, .npy) for the encoder of the program, in the order of the"
            " options",
        )


def _add_text(parser: ArgumentParser) -> None:
    _add_prompt(parser)
    parser.add_argument(
        "--tokenizer",
        default="",
        metavar="FILE|FOLDER|bytes",
        help="of Hugging Face, SentencePiece, tiktoken or llama2.c; default: that of the"
        " configuration, else a token for each byte",
    )
    parser.add_argument(
        "--chat", action="store_true", help="put the prompt into the tokenizer's chat template"
    )
    parser.add_argument("--system", default="", metavar="TEXT", help="message before it")
    parser.add_argument(
        "--max-new-tokens", type=count, metavar="N", help="default: until the context is full"
    )
    parser.add_argument(
        "--temperature",
        type=not_negative,
        default=0.0,
        metavar="X",
        help="of the draws; default: 0, the likeliest token",
    )
    parser.add_argument(
        "--top-p", type=_share, default=1.0, metavar="X", help="share that is drawn from"
    )
    parser.add_argument(
        "--seed", type=count_or_none, default=0, metavar="N", help="of the draws; default: 0"
    )
    parser.add_argument(
        "--num-bos", type=count_or_none, default=0, metavar="N", help="tokens that begin a text"
    )
    parser.add_argument(
        "--ignore-eos", action="store_true", help="go on behind the end of the text"
    )
    parser.add_argument(
        "--stop",
        action="append",
        default=[],
        metavar="TEXT",
        help="a token's name or a text that ends the generation; may be repeated",
    )
    parser.add_argument("--warmup", action="store_true", help="generate a few tokens before")
    _add_gap(parser)


def _add_gap(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--text", default="", metavar="FILE", help="of gap: read by both, token by token"
    )
    parser.add_argument(
        "--tokens", type=count, default=64, metavar="N", help="of gap: of the text; default: 64"
    )
    parser.add_argument(
        "--config",
        default="",
        metavar="FILE.yaml[:SETTINGS]",
        help="of gap: configuration of the float model; default: that in the recipe of the program"
        " or of the record that it was compiled from",
    )
    parser.add_argument(
        "--by-node",
        type=count,
        metavar="N",
        help="of gap: log all values of the first N calls and compare each node; -o keeps them",
    )


def _add_plan(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--memory", type=count, metavar="MIB", help="of plan: which lengths fit into it"
    )
    parser.add_argument(
        "--length",
        type=count,
        action="append",
        default=[],
        dest="lengths",
        metavar="N",
        help="of plan: a length of the context; may be repeated; default: powers of two",
    )


def _share(text: str) -> float:
    found = not_negative(text)
    if not 0.0 < found <= 1.0:
        raise ArgumentTypeError(f"expected a share above 0, at most 1, found {text!r}")
    return found


def run(options: Namespace) -> Answer:
    """Do the action.

    Raises: CommandError
    """
    return _ACTIONS[options.action](options)
