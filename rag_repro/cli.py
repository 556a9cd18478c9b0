"""The command line: `rag-repro COMMAND --help` explains each.

What each does is in `commands`, heavy libraries imported inside, so that help
comes at once. Errors that a user can mend are printed as one line without a
traceback, exit status 2.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence

from . import __version__, logs
from . import commands as do
from .arguments import Parser, move, path, port, positive, seed, shard
from .study.conditions import ROLES, TIERS
from .study.files import trouble

FORMATS = ("csv", "md", "json")
_OWN = "results/local/records"
_DTYPES = "float32, bfloat16 or float16; nf4 with the extra gpu (float32)"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `rag-repro`; -> exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may know ASCII alone
            stream.reconfigure(errors="backslashreplace")
    arguments = argparse.Namespace(saves=False)
    try:
        try:
            parser().parse_args(argv, arguments)
            logs.to_stderr()
            return arguments.run(arguments) or 0
        finally:  # what cannot be printed is told here, not when Python ends
            print(end="", flush=True)
    except BrokenPipeError:  # whoever read our output, as `head`, has had enough
        _drop_output()
        return 0
    except (ValueError, FileNotFoundError) as error:
        # Every room's own errors are ValueErrors whose message says what to do.
        print(f"rag-repro: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a full disk, a folder that may not be written
        _drop_output()
        place = f"{error.filename}: " if error.filename else ""
        saved = "; what was finished is saved" if arguments.saves else ""
        print(f"rag-repro: {place}{trouble(error)}{saved}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        saved = "; what was finished is recorded" if arguments.saves else ""
        print(f"rag-repro: interrupted{saved}", file=sys.stderr)
        return 130


def _drop_output() -> None:
    """Nothing more can be printed; Python would try once more at its end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError):
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def parser() -> argparse.ArgumentParser:
    """All commands with their help."""
    top = Parser(
        prog="rag-repro",
        description="Re-test four retrieval-augmented-generation papers, in the open.",
        epilog="Real data comes from the folder named by RAG_REPRO_DATA (or --data).",
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    run = _command(commands, "run", do.run, "run the conditions of an exhibit, or go on with them")
    _conditions(run)
    run.add_argument(
        "--condition", action="append", metavar="HASH", help="only this one (repeatable)"
    )
    run.add_argument(
        "--shard", type=shard, default=(1, 1), metavar="I/N", help="only every N-th question"
    )
    run.add_argument(
        "--estimate", action="store_true", help="print what it would cost, run nothing"
    )
    run.add_argument(
        "--failed", action="store_true", help="ask the questions that failed again, too"
    )
    run.add_argument("--join", action="store_true", help="join finished shards, ask nothing")
    run.add_argument("--missing", action="store_true", help="all that registered tests lack")
    _computing(run)
    _folders(run, _OWN)
    _record(run)

    grid = _command(
        commands, "grid", do.grid, "run the conditions of exhibits on many workers, by Snakemake"
    )
    _conditions(grid)
    grid.add_argument(
        "--shards", type=positive, default=1, metavar="N", help="jobs for each condition (1)"
    )
    grid.add_argument(
        "--chapter", action="append", default=[], help="execute it behind them (repeatable)"
    )
    grid.add_argument(
        "--dry-run", action="store_true", help="print what is missing and its cost, run nothing"
    )
    grid.add_argument(
        "--no-trial", action="store_true", help="with --dry-run: count, and ask nothing to know"
    )
    grid.add_argument(
        "--folder", type=path, help="with --dry-run: write the plan there, for workflow/Snakefile"
    )
    grid.add_argument(
        "--profile", default="machine", help="machine, slurm, kubernetes or a folder (machine)"
    )
    grid.add_argument("--workers", type=positive, help="jobs at once (the profile's)")
    _computing(grid)
    _folders(grid, _OWN)
    _record(grid)

    time = _command(
        commands, "time", do.time, "time the methods of an exhibit side by side, or go on with it"
    )
    time.add_argument("exhibit", metavar="EXHIBIT", help="as drrag.fig3")
    _selection(time)
    time.add_argument(
        "--repeats", type=positive, default=1, help="how often each question is asked (1)"
    )
    _machine(time)
    _folders(time, _OWN)
    _continue(time, "times")

    exhibit = _command(commands, "exhibit", do.exhibit, "print an exhibit, the paper's beside ours")
    exhibit.add_argument("exhibit", metavar="EXHIBIT", help="as drrag.table5")
    exhibit.add_argument("--tier", choices=TIERS, help="only this tier")
    exhibit.add_argument("--format", choices=FORMATS, default="md", help="of the output (md)")
    _folders(exhibit)

    claims = _command(commands, "claims", do.claims, "print every claim with its verdict")
    claims.add_argument("--paper", action="append", help="only this paper (repeatable)")
    claims.add_argument(
        "--tier", choices=TIERS, action="append", help="only this tier (repeatable)"
    )
    claims.add_argument("--format", choices=FORMATS, default="md", help="of the output (md)")
    _folders(claims)

    tests = _command(
        commands, "registration", do.registration, "fix claims' tests before they are run"
    )
    tests.add_argument("action", nargs="?", choices=("write",), help="register tests")
    tests.add_argument("claims", nargs="*", metavar="CLAIM", help="as drrag.c05; main: all such")
    tests.add_argument("--check", action="store_true", help="recompute what is written")
    tests.add_argument("--tier", choices=TIERS, action="append", help="only this (repeatable)")
    tests.add_argument(
        *("--move", "-m"),
        type=move,
        action="append",
        default=[],
        metavar="NAME=NAME,...",
        help="a data set or reader, and what takes its place (repeatable)",
    )
    tests.add_argument(
        "--split", choices=("test", "confirm"), default="test", help="of the questions (test)"
    )
    _data(tests)

    show = _command(
        commands, "show", do.show, "list an exhibit's questions, or print what was decided on one"
    )
    show.add_argument("exhibit", metavar="EXHIBIT", help="as dragin.table2")
    show.add_argument("--question", metavar="ID", help="as --list names it")
    show.add_argument("--list", action="store_true", help="all questions, and who was right")
    show.add_argument("--where", metavar="WHO", help="only such: 'dragin right, sr wrong'")
    show.add_argument(
        "--again", action="store_true", help="ask again, and print all that a method decides"
    )
    show.add_argument(
        "--html", type=path, nargs="?", const="-", metavar="FILE", help="a page (default: printed)"
    )
    show.add_argument("--tier", choices=TIERS, help="only this tier")
    show.add_argument("--dataset", action="append", help="only this data set (repeatable)")
    show.add_argument("--method", action="append", help="only this row or method (repeatable)")
    _folders(show)

    status = _command(commands, "status", do.status, "print what has been run, what is missing")
    _folders(status)

    seal = _command(
        commands, "seal", do.seal, "store finished records as parquet, for contributors"
    )
    seal.add_argument("--results", type=path, help="folder of records (default: the checkout's)")

    audit = _command(commands, "audit", do.audit, "compute the scores of all records again")
    audit.add_argument("--sample", action="store_true", help="only two answers in a hundred")
    _folders(audit)

    compare = _command(commands, "compare", do.compare, "compare two folders of records")
    compare.add_argument("a", type=path, help="a folder of records, as results/records")
    compare.add_argument("b", type=path, help="another, made by you or on another machine")

    methods = _command(commands, "methods", do.methods, "list the methods by their papers' names")
    methods.add_argument("name", nargs="*", help="only these (default: all)")

    compare_methods = _command(
        commands,
        "compare-methods",
        do.compare_methods,
        "ask several methods the questions of a data set, and compare their answers",
    )
    compare_methods.add_argument(
        "file", type=path, help="YAML with methods, dataset and whatever else `compare` takes"
    )
    compare_methods.add_argument(
        "--format", choices=("md", "csv"), default="md", help="a table, or a line per answer (md)"
    )
    _machine(compare_methods)
    _data(compare_methods)

    train = _command(commands, "train", do.train, "train what a recipe names, or go on with it")
    train.add_argument("name", help="as testbed-reader; recipes.yaml has them all")
    train.add_argument("--seed", type=seed, help="this seed only (default: the headline one)")
    train.add_argument("--estimate", action="store_true", help="print the cost, train nothing")
    train.add_argument("--base", help="another base, as hub:OWNER/NAME@COMMIT")
    train.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (cpu)")
    train.add_argument("--out", type=path, help="where the adapter goes (default: artifacts/)")
    _folders(train)

    tune = _command(
        commands, "tune", do.tune, "find what is tuned, thresholds above all, from records"
    )
    tune.add_argument("exhibit", metavar="EXHIBIT", help="as drrag.outcomes or dragin.tuning")
    tune.add_argument("--popularity", default="testbed", help="testbed, wikipedia or mentions")
    tune.add_argument(
        "--dataset", action="append", required=True, help="whose questions (repeatable)"
    )
    _folders(tune)

    serve = _command(
        commands, "serve-search", do.serve_search, "serve a data set's passages as a search engine"
    )
    serve.add_argument("dataset", help="whose passages are searched, as world-B or hotpotqa")
    serve.add_argument("--retriever", default="bm25", help="what searches them (bm25)")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (the loopback alone)")
    serve.add_argument("--port", type=port, default=8765, help="0 takes any that is free (8765)")
    serve.add_argument(
        "--latency", type=float, default=0.0, help="seconds that each answer waits (0)"
    )
    _data(serve)

    corpus = _command(
        commands, "corpus", do.corpus, "load a data set's passages into Milvus, or look at them"
    )
    corpus.add_argument(
        "action",
        choices=("build", "card", "check"),
        help="load; print the card; compare with searches without Milvus",
    )
    corpus.add_argument("dataset", help="whose passages, as world-B@20000 or hotpotqa")
    corpus.add_argument(
        "--retriever",
        default="milvus-bm25",
        help="milvus-bm25, milvus-minilm or milvus-hybrid (milvus-bm25)",
    )
    corpus.add_argument(
        "--address", help="of a Milvus, as http://127.0.0.1:19530 (default: the embedded one)"
    )
    corpus.add_argument(
        "--anew", action="store_true", help="`build`: drop what is there and load all again"
    )
    corpus.add_argument(
        "--sample", type=positive, default=200, help="`check`: passages to read back (200)"
    )
    corpus.add_argument(
        "--queries", type=positive, default=50, help="`check`: questions to search for (50)"
    )
    _data(corpus)

    growth = _command(
        commands,
        "growth",
        do.growth,
        "measure how an index grows with the corpus, or go on with it",
    )
    growth.add_argument("retriever", help="as bm25, minilm or milvus-bm25")
    growth.add_argument(
        "--sizes",
        type=positive,
        nargs="+",
        required=True,
        metavar="N",
        help="passages of world B, smallest first",
    )
    growth.add_argument("--queries", type=positive, default=100, help="searches to time (100)")
    growth.add_argument(
        "--minutes", type=positive, default=10, help="of processor time at most for a size (10)"
    )
    growth.add_argument(
        "--memory", type=positive, default=6, help="gigabytes at most for a size (6)"
    )
    growth.add_argument("--results", type=path, help=f"folder of records (default: {_OWN})")
    _continue(growth, "growth")

    chapter = _command(commands, "chapter", do.chapter, "execute one chapter of the book")
    chapter.add_argument("name", help="as 11_drrag_recall; what it begins with will do, as 11")
    chapter.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="a parameter of the chapter (repeatable)",
    )
    chapter.add_argument("--kernel", help="an installed Jupyter kernel (default: this Python)")
    chapter.add_argument("--out", type=path, help="where the executed notebook goes")
    chapter.add_argument(
        "--update",
        action="store_true",
        help="put a default run into the book, book/chapters/, for contributors",
    )

    book = _command(commands, "book", do.book, "execute what changed, check, build the HTML")
    book.add_argument("--force", action="store_true", help="execute every chapter anew")
    book.add_argument("--only", action="append", default=[], help="only this chapter (repeatable)")
    book.add_argument(
        "--jobs", type=positive, default=1, help="chapters at once, of up to 6 GB each (1)"
    )

    data = _command(
        commands, "data", do.data, "list the data sets, print a set's card, or fetch its release"
    )
    data.add_argument(
        "action",
        choices=("list", "card", "fetch"),
        help="all names; one set's card; its official release into the folder",
    )
    data.add_argument("name", nargs="?", help="the data set, for `card` and `fetch`")
    _data(data)
    data.add_argument("--json", action="store_true", help="`list` and `card` as JSON")
    data.add_argument(
        "--url", help="`fetch` from this address (of the file; of the folder, if it ends in /)"
    )
    data.add_argument(
        "--sha256", help="what the `fetch`ed file must have, instead of what is known"
    )
    return top


def _command(commands, name: str, run, text: str) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", epilog=run.__doc__
    )
    # Of these an end before its time costs nothing that was finished.
    saves = run in (
        do.run,
        do.grid,
        do.compare_methods,
        do.time,
        do.train,
        do.corpus,
        do.growth,
        do.book,
    )
    made.set_defaults(run=run, saves=saves)
    return made


def _selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tier", choices=TIERS, help="only this tier")
    command.add_argument("--role", choices=ROLES, help="only primary or only secondary conditions")
    command.add_argument("--dataset", action="append", help="only this data set (repeatable)")
    command.add_argument("--method", action="append", help="only this row or method (repeatable)")
    command.add_argument("--n", type=positive, help="only the first N questions of each")


def _conditions(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "exhibits", nargs="*", metavar="EXHIBIT", help="as drrag.table5; of a grid, none: all"
    )
    _selection(command)
    command.add_argument(
        "--seeds",
        type=seed,
        nargs="+",
        default=(),
        metavar="SEED",
        help="of trained rows, for those that the exhibits name",
    )


def _computing(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--batch-size", type=positive, default=16, help="answers written at once (16)"
    )
    command.add_argument(
        "--in-flight",
        type=positive,
        default=4,
        help="requests at once at each server of a reader api:MODEL@URL,URL (4)",
    )
    _machine(command)


def _machine(command: argparse.ArgumentParser) -> None:
    command.add_argument("--device", default="cpu", help="auto, cpu, cuda or mps (cpu)")
    command.add_argument("--dtype", default="float32", help=_DTYPES)


def _folders(command: argparse.ArgumentParser, default: str = "the checkout's") -> None:
    command.add_argument("--results", type=path, help=f"folder of records (default: {default})")
    _data(command)


def _record(command: argparse.ArgumentParser) -> None:
    """Who adds to the committed records says so."""
    command.add_argument(
        "--record",
        dest="into_committed",
        action="store_true",
        help="add to the checkout's results/records, for contributors",
    )


def _continue(command: argparse.ArgumentParser, folder: str) -> None:
    command.add_argument(
        "--continue",
        dest="into_committed",
        action="store_true",
        help=f"add to the checkout's results/{folder}, made on this very machine",
    )


def _data(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", type=path, help="folder of real data (default: RAG_REPRO_DATA)")


if __name__ == "__main__":
    sys.exit(main())
