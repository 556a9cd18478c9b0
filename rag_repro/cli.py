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
from collections.abc import Callable, Sequence

from rag_repro import __version__, logs
from rag_repro.arguments import Parser, path, port, positive, seed, shard
from rag_repro.commands import preparing, recording, using
from rag_repro.study.conditions import ROLES, TIERS
from rag_repro.study.files import trouble

FORMATS = ("csv", "md", "json")
_OWN = "results/local/records"


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


def parser() -> Parser:
    """All commands with their help."""
    top = Parser(
        prog="rag-repro",
        description="Re-test four retrieval-augmented-generation papers, in the open.",
        epilog="Real data comes from the folder named by RAG_REPRO_DATA (or --data).",
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def command(run: Callable, text: str) -> Parser:
        made = commands.add_parser(
            run.__name__.replace("_", "-"),
            help=text,
            description=text[0].upper() + text[1:] + ".",
            epilog=run.__doc__,
        )
        made.set_defaults(run=run, saves=run.__name__ in _SAVES)
        return made

    run = command(recording.run, "run the conditions of an exhibit, or go on with them")
    _conditions(run)
    run.repeated("--condition", "only this one", metavar="HASH")
    run.option("--shard", "only every N-th question", type=shard, default=(1, 1), metavar="I/N")
    run.flag("--estimate", "print what it would cost, run nothing")
    run.flag("--failed", "ask the questions that failed again, too")
    run.flag("--join", "join finished shards, ask nothing")
    run.flag("--missing", "all that registered tests lack")
    _computing(run)
    _folders(run, _OWN)
    _record(run)

    grid = command(recording.grid, "run the conditions of exhibits on many workers, by Snakemake")
    _conditions(grid)
    grid.option("--shards", "jobs for each condition (1)", type=positive, default=1, metavar="N")
    grid.repeated("--chapter", "execute it behind them", default=[])
    grid.flag("--dry-run", "print what is missing and its cost, run nothing")
    grid.flag("--no-trial", "with --dry-run: count, and ask nothing to know")
    grid.option(
        "--folder", "with --dry-run: write the plan there, for workflow/Snakefile", type=path
    )
    grid.option("--profile", "machine, slurm, kubernetes or a folder (machine)", default="machine")
    grid.option("--workers", "jobs at once (the profile's)", type=positive)
    _computing(grid)
    _folders(grid, _OWN)
    _record(grid)

    time = command(recording.time, "time the methods of an exhibit side by side, or go on with it")
    time.option("exhibit", "as drrag.fig3", metavar="EXHIBIT")
    _selection(time)
    time.option("--repeats", "how often each question is asked (1)", type=positive, default=1)
    _machine(time)
    _folders(time, _OWN)
    _continue(time, "times")

    exhibit = command(recording.exhibit, "print an exhibit, the paper's beside ours")
    exhibit.option("exhibit", "as drrag.table5", metavar="EXHIBIT")
    exhibit.option("--tier", "only this tier", choices=TIERS)
    exhibit.option("--format", "of the output (md)", choices=FORMATS, default="md")
    _folders(exhibit)

    claims = command(recording.claims, "print every claim with its verdict")
    claims.repeated("--paper", "only this paper")
    claims.repeated("--tier", "only this tier", choices=TIERS)
    claims.option("--format", "of the output (md)", choices=FORMATS, default="md")
    _folders(claims)

    tests = command(recording.registration, "fix claims' tests before they are run")
    which = "as drrag.c05; main: the headline ones; after the word `write`: register them"
    tests.option("claims", which, nargs="*", metavar="CLAIM")
    tests.flag("--check", "recompute what is written")
    tests.repeated("--tier", "only this", choices=TIERS)
    tests.option("--split", "of the questions (test)", choices=("test", "confirm"), default="test")
    _data(tests)

    show = command(recording.show, "list an exhibit's questions, or print what was decided on one")
    show.option("exhibit", "as dragin.table2", metavar="EXHIBIT")
    show.option("--question", "as --list names it", metavar="ID")
    show.flag("--list", "all questions, and who was right")
    show.option("--where", "only such: 'dragin right, sr wrong'", metavar="WHO")
    show.flag("--again", "ask again, and print all that a method decides")
    page = "a page (default: printed)"
    show.option("--html", page, type=path, nargs="?", const="-", metavar="FILE")
    show.option("--tier", "only this tier", choices=TIERS)
    show.repeated("--dataset", "only this data set")
    show.repeated("--method", "only this row or method")
    _folders(show)

    _folders(command(recording.status, "print what has been run, what is missing"))

    seal = command(recording.seal, "store finished records as parquet, for contributors")
    seal.option("--results", "folder of records (default: the checkout's)", type=path)

    audit = command(recording.audit, "compute the scores of all records again")
    _folders(audit)

    compare = command(recording.compare, "compare two folders of records")
    compare.option("a", "a folder of records, as results/records", type=path)
    compare.option("b", "another, made by you or on another machine", type=path)

    methods = command(using.methods, "list the methods by their papers' names")
    methods.option("name", "only these (default: all)", nargs="*")

    about = "ask several methods the questions of a data set, and compare their answers"
    several = command(using.compare_methods, about)
    about = "YAML with methods, dataset and whatever else `compare` takes"
    several.option("file", about, type=path)
    several.option(
        "--format", "a table, or a line per answer (md)", choices=("md", "csv"), default="md"
    )
    _machine(several)
    _data(several)

    train = command(preparing.train, "train what a recipe names, or go on with it")
    train.option("name", "as testbed-reader; recipes.yaml has them all")
    train.option("--seed", "this seed only (default: the headline one)", type=seed)
    train.flag("--estimate", "print the cost, train nothing")
    train.option("--base", "another base, as hub:OWNER/NAME@COMMIT")
    train.option("--device", "auto, cpu, cuda or mps (cpu)", default="cpu")
    train.option("--out", "where the adapter goes (default: artifacts/)", type=path)
    _folders(train)

    tune = command(preparing.tune, "find what is tuned, thresholds above all, from records")
    tune.option("exhibit", "as drrag.outcomes or dragin.tuning", metavar="EXHIBIT")
    tune.option("--popularity", "testbed, wikipedia or mentions", default="testbed")
    tune.repeated("--dataset", "whose questions", required=True)
    _folders(tune)

    serve = command(preparing.serve_search, "serve a data set's passages as a search engine")
    serve.option("dataset", "whose passages are searched, as world-B or hotpotqa")
    serve.option("--retriever", "what searches them (bm25)", default="bm25")
    serve.option("--host", "where to listen (the loopback alone)", default="127.0.0.1")
    serve.option("--port", "0 takes any that is free (8765)", type=port, default=8765)
    serve.option("--latency", "seconds that each answer waits (0)", type=float, default=0.0)
    _data(serve)

    corpus = command(preparing.corpus, "load a data set's passages into Milvus, or look at them")
    actions = "load; print the card; compare with searches without Milvus"
    corpus.option("action", actions, choices=("build", "card", "check"))
    corpus.option("dataset", "whose passages, as world-B@20000 or hotpotqa")
    known = "milvus-bm25, milvus-minilm or milvus-hybrid (milvus-bm25)"
    corpus.option("--retriever", known, default="milvus-bm25")
    corpus.option("--address", "of a Milvus, as http://127.0.0.1:19530 (default: the embedded one)")
    corpus.flag("--anew", "`build`: drop what is there and load all again")
    corpus.option("--sample", "`check`: passages to read back (200)", type=positive, default=200)
    corpus.option("--queries", "`check`: questions to search for (50)", type=positive, default=50)
    _data(corpus)

    growth = command(
        preparing.growth, "measure how an index grows with the corpus, or go on with it"
    )
    growth.option("retriever", "as bm25, minilm or milvus-bm25")
    sizes = {"type": positive, "nargs": "+", "required": True, "metavar": "N"}
    growth.option("--sizes", "passages of world B, smallest first", **sizes)
    growth.option("--queries", "searches to time (100)", type=positive, default=100)
    growth.option(
        "--minutes", "of processor time at most for a size (10)", type=positive, default=10
    )
    growth.option("--memory", "gigabytes at most for a size (6)", type=positive, default=6)
    growth.option("--results", f"folder of records (default: {_OWN})", type=path)
    _continue(growth, "growth")

    chapter = command(using.chapter, "execute one chapter of the book")
    chapter.option("name", "as 11_drrag_recall; what it begins with will do, as 11")
    pair = {"nargs": 2, "default": [], "metavar": ("NAME", "VALUE")}
    chapter.repeated("-p", "a parameter of the chapter", "--parameter", **pair)
    chapter.option("--kernel", "an installed Jupyter kernel (default: this Python)")
    chapter.option("--out", "where the executed notebook goes", type=path)
    chapter.flag("--update", "put a default run into the book, book/chapters/, for contributors")

    book = command(using.book, "execute what changed, check, build the HTML")
    book.flag("--force", "execute every chapter anew")
    book.repeated("--only", "only this chapter", default=[])
    book.option("--jobs", "chapters at once, of up to 6 GB each (1)", type=positive, default=1)

    data = command(preparing.data, "list the data sets, print a set's card, or fetch its release")
    actions = "all names; one set's card; its official release into the folder"
    data.option("action", actions, choices=("list", "card", "fetch"))
    data.option("name", "the data set, for `card` and `fetch`", nargs="?")
    _data(data)
    data.flag("--json", "`list` and `card` as JSON")
    data.option("--url", "`fetch` from this address (of the file; of the folder, if it ends in /)")
    data.option("--sha256", "what the `fetch`ed file must have, instead of what is known")
    return top


# Of these an end before its time costs nothing that was finished.
_SAVES = ("run", "grid", "compare_methods", "time", "train", "corpus", "growth", "book")


def _selection(command: Parser) -> None:
    command.option("--tier", "only this tier", choices=TIERS)
    command.option("--role", "only primary or only secondary conditions", choices=ROLES)
    command.repeated("--dataset", "only this data set")
    command.repeated("--method", "only this row or method")
    command.option("--n", "only the first N questions of each", type=positive)


def _conditions(command: Parser) -> None:
    which = "as drrag.table5; of a grid, none: all"
    command.option("exhibits", which, nargs="*", metavar="EXHIBIT")
    _selection(command)
    whose = "of trained rows, for those that the exhibits name"
    command.option("--seeds", whose, type=seed, nargs="+", default=(), metavar="SEED")


def _computing(command: Parser) -> None:
    command.option("--batch-size", "answers written at once (16)", type=positive, default=16)
    requests = "requests at once at each server of a reader api:MODEL@URL,URL (4)"
    command.option("--in-flight", requests, type=positive, default=4)
    _machine(command)


def _machine(command: Parser) -> None:
    command.option("--device", "auto, cpu, cuda or mps (cpu)", default="cpu")
    dtypes = "float32, bfloat16 or float16; nf4 with the extra gpu (float32)"
    command.option("--dtype", dtypes, default="float32")


def _folders(command: Parser, default: str = "the checkout's") -> None:
    command.option("--results", f"folder of records (default: {default})", type=path)
    _data(command)


def _record(command: Parser) -> None:
    """Who adds to the committed records says so."""
    into = "add to the checkout's results/records, for contributors"
    command.flag("--record", into, dest="into_committed")


def _continue(command: Parser, folder: str) -> None:
    into = f"add to the checkout's results/{folder}, made on this very machine"
    command.flag("--continue", into, dest="into_committed")


def _data(command: Parser) -> None:
    command.option("--data", "folder of real data (default: RAG_REPRO_DATA)", type=path)


if __name__ == "__main__":
    sys.exit(main())
