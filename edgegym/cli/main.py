"""Finds the command, and turns its outcome into an exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module

from edgegym.cli.errors import BadInput, checked_input

OK, BAD_INPUT, INTERRUPTED = 0, 2, 130

_EXAMPLES = """\
examples:
  edgegym scenarios show moving-hotspot
  edgegym simulate --scenario paper --router nearest --hours 1 --records requests.parquet
  edgegym solve --scenario paper --set demand.request_intensity=4
  edgegym compare --scenario toy --policy static uniform analytic --seeds 3 -o result
  edgegym render --scenario moving-hotspot --policy analytic_local -o fleet.gif

`edgegym COMMAND --help` explains a command."""


@dataclass(frozen=True)
class Command:
    """A command, or a group of them, that is imported only when it is called."""

    module: str
    """Module of ``edgegym.cli``."""
    functions: tuple[str, ...]
    """Its entry points: one is the command itself, several are subcommands."""
    summary: str
    """One line for the list of commands."""
    reads_only: bool = False
    """Whether all it does is to read and check input, so that any refusal is bad input."""


COMMANDS = {
    "scenarios": Command(
        "scenarios", ("list_", "show", "check"), "list the built-in worlds, print or check one"
    ),
    "solve": Command("solve", ("solve",), "solve the analytic model of a scenario"),
    "compare": Command("compare", ("compare",), "let policies serve the same requests"),
    "simulate": Command(
        "simulate", ("simulate",), "let a fleet serve traffic, and say how it fared"
    ),
    "render": Command("render", ("render",), "animate a policy at work"),
    "trace": Command(
        "trace",
        ("inspect", "scenario"),
        "inspect a trace, or build a scenario of it",
        reads_only=True,
    ),
    "figures": Command("figures", ("figures",), "draw the framework paper's figures"),
    "bench": Command("bench", ("bench",), "measure the speed of this installation"),
}
"""Commands by name, in the order of the help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        Exit code: 0, 2 for bad input (the message is on standard error), 130 for an interrupt.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(arguments)
    except BadInput as error:
        print(f"edgegym: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("edgegym: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (`head`, say) has seen enough. Python flushes at exit: let it flush to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except SystemExit as error:  # tyro: 0 after help, 2 for usage errors
        return error.code if isinstance(error.code, int) else BAD_INPUT


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return OK if arguments else BAD_INPUT
    if arguments[0] == "--version":
        from edgegym import __version__

        print(f"edgegym {__version__}")
        return OK
    name, *rest = arguments
    if name not in COMMANDS:
        raise BadInput(f"command = '{name}': must be one of {', '.join(COMMANDS)}; see --help")
    command = COMMANDS[name]
    with checked_input() if command.reads_only else nullcontext():
        _call(name, command, rest)
    sys.stdout.flush()
    return OK


def _call(name: str, command: Command, arguments: list[str]) -> None:
    import tyro

    module = import_module(f"edgegym.cli.{command.module}")
    functions: dict[str, Callable[..., None]] = {
        function.rstrip("_"): getattr(module, function) for function in command.functions
    }
    program = f"edgegym {name}"
    if len(functions) == 1:
        (function,) = functions.values()
        tyro.cli(function, args=arguments, prog=program)
    else:
        tyro.extras.subcommand_cli_from_dict(
            functions, args=arguments, prog=program, description=f"{command.summary}."
        )


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: edgegym [-h] [--version] COMMAND ...",
            "",
            "Place and migrate prompt-prefix state on wireless edge GPUs.",
            "",
            "commands:",
            *lines,
            "",
            _EXAMPLES,
        ]
    )
