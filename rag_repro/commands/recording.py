"""What makes records, and what tells what they hold."""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING, Any

from rag_repro.commands.folders import held_in, kept, written_to

if TYPE_CHECKING:
    from rag_repro.study.papers import Cell
    from rag_repro.study.services import Workshop

log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Finished questions are kept and not asked again; primary conditions run first. Answers go
    to results/local/records, which build on the committed ones: what these hold is not asked
    again. `rag-repro exhibit EXHIBIT --results results/local/records` shows both. With --record,
    what a registered test asks for goes to results/registered, as with --missing."""
    from rag_repro.book_folders import here
    from rag_repro.study import campaign, registration, standing, timed_runs

    if arguments.join and (arguments.estimate or arguments.shard != (1, 1)):
        raise ValueError("--join joins what shards left; leave --shard and --estimate out")
    if arguments.failed and (arguments.join or arguments.estimate or arguments.shard != (1, 1)):
        raise ValueError("--failed asks again; leave --shard, --join and --estimate out")
    if not (arguments.exhibits or arguments.condition or arguments.missing):
        raise ValueError(
            "name an exhibit, as drrag.table5, or a --condition; all there are would take days: "
            "`rag-repro grid --dry-run --no-trial` lists them"
        )
    if arguments.missing:
        if arguments.exhibits or arguments.condition:
            raise ValueError("--missing is all that is registered; name no exhibit or condition")
        results = here().records
        cells = campaign.once(standing.missing(results.parent))
    else:
        cells = _cells(arguments, conditions=arguments.condition)
        results = written_to(arguments)
    if not arguments.estimate:
        campaign.check_writable(cells, results)
    workshop = _workshop(arguments)
    asked = {"n": arguments.n, "shard": arguments.shard}
    if arguments.join:
        campaign.join(cells, workshop, results)
    elif arguments.estimate:
        size = arguments.batch_size
        for line in campaign.estimate(cells, workshop, results, **asked, batch_size=size):
            print(line, flush=True)
    else:
        asked |= {"batch_size": arguments.batch_size, "failed": arguments.failed}
        campaign.run([cell for cell in cells if not cell.timed], workshop, results, **asked)
        if timed := [cell for cell in cells if cell.timed]:  # of --missing alone
            tests = registration.tests_of(results.parent)
            folder = registration.destination(results, timed[0].condition, tests)
            timed_runs.with_bar(timed, workshop, folder)
    return 0


def _cells(arguments: argparse.Namespace, **more: Any) -> list[Cell]:
    """The conditions that were chosen, of exhibits without times."""
    from rag_repro.study import campaign, papers

    return campaign.select(
        arguments.exhibits or papers.exhibits(timed=False),
        tier=arguments.tier,
        role=arguments.role,
        datasets=arguments.dataset,
        methods=arguments.method,
        seeds=arguments.seeds,
        **more,
    )


def _workshop(arguments: argparse.Namespace) -> Workshop:
    from rag_repro.study.services import Workshop

    return Workshop(
        data_dir=arguments.data,
        device=arguments.device,
        dtype=arguments.dtype,
        batch_size=arguments.batch_size,
        in_flight=arguments.in_flight,
    )


def grid(arguments: argparse.Namespace) -> int:
    """Each job is a command of this program, and what is recorded already is in no job, so the
    same command again does what is missing. Without --dry-run it needs Snakemake: `make grid`, or
    RAG_REPRO_SNAKEMAKE=/path/to/snakemake. A dry run asks a few questions of each condition, as
    `run --estimate` does, and so loads (and downloads) what these need; --no-trial does not."""
    from rag_repro import workflow
    from rag_repro.book_folders import here
    from rag_repro.study import campaign
    from rag_repro.study.files import check_output

    if not arguments.dry_run and (arguments.no_trial or arguments.folder):
        raise ValueError("--no-trial and --folder go with: rag-repro grid ... --dry-run")
    places = here()
    chapters = [*map(places.name_of, arguments.chapter)]
    if arguments.chapter and not arguments.into_committed:
        raise ValueError(
            "chapters show the checkout's records: add --record, or leave --chapter out"
        )
    if arguments.folder:
        check_output(arguments.folder / "plan.json")
    results = written_to(arguments)
    cells = _cells(arguments)
    if not arguments.dry_run:
        campaign.check_writable(cells, results)
    workshop = _workshop(arguments)
    settings = workflow.GridSettings(
        tuple(arguments.exhibits),
        results,
        data=arguments.data,
        seeds=tuple(arguments.seeds),
        device=arguments.device,
        dtype=arguments.dtype,
        batch_size=arguments.batch_size,
        in_flight=arguments.in_flight,
    )
    plan = workflow.plan(
        cells,
        workshop,
        settings,
        n=arguments.n,
        shards=arguments.shards,
        chapters=chapters,
    )
    trial = arguments.dry_run and not arguments.no_trial
    print(workflow.describe_plan(plan, workshop, settings, trial=trial), flush=True)
    if arguments.folder:
        workflow.write(plan, places, arguments.folder)
    if not arguments.dry_run and plan.jobs:
        workflow.run(
            plan,
            places,
            workflow.snakemake(places),
            profile=workflow.profile(arguments.profile, places),
            workers=arguments.workers,
        )
    return 0


def time(arguments: argparse.Namespace) -> None:
    """One question in flight, methods in turn, no call cache; the times go into the folder `times`
    beside that of the records, so to results/local/times; --continue adds to the committed ones.
    Nothing else should be at work on the machine meanwhile. What was timed by other methods, or on
    another machine, is not continued: move it away."""
    from rag_repro.study import campaign, timed_runs
    from rag_repro.study.services import Workshop

    results = written_to(arguments)
    cells = campaign.select(
        [arguments.exhibit],
        tier=arguments.tier,
        role=arguments.role,
        datasets=arguments.dataset,
        methods=arguments.method,
        timed=True,
    )
    campaign.check_writable(cells, results)
    if arguments.results is None and not arguments.into_committed:
        log.info("times go to %s; --continue adds to the committed ones", results.parent / "times")
    workshop = Workshop(
        data_dir=arguments.data, device=arguments.device, dtype=arguments.dtype, batch_size=1
    )
    timed_runs.with_bar(cells, workshop, results, n=arguments.n, repeats=arguments.repeats)


def exhibit(arguments: argparse.Namespace) -> None:
    """Columns of the CSV: exhibit, tier, dataset, method, what the exhibit varies, metric,
    paper (as printed), ours with lo and hi (95 %), n, and the difference to the baseline."""
    results = held_in(arguments)

    def text() -> str:
        from rag_repro.bars import waiting
        from rag_repro.show import exhibit_rows
        from rag_repro.study import papers
        from rag_repro.study.scores import Results

        with waiting(f"computing {arguments.exhibit}"):
            paper, exhibit = papers.exhibit(arguments.exhibit)
            rows = exhibit_rows.rows(paper, exhibit, Results(results), arguments.tier)
        if arguments.tier and not rows:
            tiers = ", ".join(dict.fromkeys(cell.tier for cell in exhibit.cells()))
            raise ValueError(
                f"{exhibit.name} has no condition at the tier {arguments.tier}; it has some at: "
                f"{tiers}"
            )
        return exhibit_rows.text(rows, arguments.format)

    print(kept(arguments, results, text), end="")


def claims(arguments: argparse.Namespace) -> None:
    """Columns: id, paper, exhibit, claim, tier, verdict, effect, lo, hi, n, and more. What was not
    run at the paper tier, or cannot be judged there, is left out unless --tier names it."""
    results = held_in(arguments)

    def text() -> str:
        from rag_repro.evaluation.verdicts import UNSAID
        from rag_repro.show import ledger
        from rag_repro.study.scores import Results

        rows = ledger.rows(Results(results), arguments.paper, arguments.tier)
        if arguments.tier is None:
            rows = [r for r in rows if r["tier"] != "paper" or r["verdict"] not in UNSAID]
        return ledger.text(rows, arguments.format)

    if arguments.tier is None:
        log.info("left out are rows of the paper tier that say nothing: --tier paper")
    print(kept(arguments, results, text), end="")


def show(arguments: argparse.Namespace) -> None:
    """A question is right where the exhibit's first metric of answers is full, as em 1 (without
    one: its first other metric in percent, as recall); a row with several answers to a question
    is right where all of them are, and wrong where none is. Texts of public questions are shown
    where their data is at hand. Records keep no words of a search: --again asks the reader."""
    from rag_repro.bars import waiting
    from rag_repro.show import recorded_answers
    from rag_repro.study import papers

    listed = arguments.list or arguments.where is not None
    if listed == (arguments.question is not None):
        raise ValueError(
            "name a question with --question ID, or list them with --list or --where, one of both: "
            f"rag-repro show {arguments.exhibit} --list"
        )
    if arguments.again and listed:
        raise ValueError("--again goes with: rag-repro show EXHIBIT --question ID")
    recorded = recorded_answers.RecordedExhibit(
        papers.exhibit(arguments.exhibit)[1],
        held_in(arguments),
        data_dir=arguments.data,
        tier=arguments.tier,
        datasets=arguments.dataset,
        rows=arguments.method,
    )
    if listed:
        with waiting(f"reading the records of {arguments.exhibit}"):
            tables = recorded_answers.listing(recorded, arguments.where)
    else:
        tables = recorded_answers.question(recorded, arguments.question, anew=arguments.again)
    if arguments.html is None:
        print(recorded_answers.text(tables))
        return
    page = recorded_answers.page(
        f"{arguments.exhibit}: {arguments.question or 'questions'}", tables
    )
    if str(arguments.html) == "-":
        print(page, end="")
    else:
        from rag_repro.digest import write_whole
        from rag_repro.study.files import check_output

        check_output(arguments.html)
        write_whole(arguments.html, page.encode())


def status(arguments: argparse.Namespace) -> None:
    """One line for each exhibit and tier."""
    results = held_in(arguments)

    def text() -> str:
        from rag_repro.commands import progress

        return progress.text(results)

    print(kept(arguments, results, text))


def seal(arguments: argparse.Namespace) -> None:
    """Run it before a commit: git keeps each version of a file. The times beside the records are
    sealed as well; what a run is at work on is left to the next time."""
    from rag_repro.study import sealed

    folder = held_in(arguments)
    times = sorted(path for path in (folder.parent / "times").glob("*") if path.is_dir())
    for root in (folder, *times):
        sealed.seal(root, lambda file, n: print(f"{file}: {n} new"))


def audit(arguments: argparse.Namespace) -> int:
    """Every score must be what its prediction, hits and gold passages give; where one is not, the
    exit status is 1. The timed answers beside the records are computed again, too."""
    from rag_repro.bars import Bar
    from rag_repro.study import rescoring

    paths = rescoring.recorded(held_in(arguments))
    with Bar(total=len(paths), desc="audit", unit="record") as bar:
        made = rescoring.audit(paths, arguments.data, report=bar.update)
    scores = sum(sum(counts.values()) for counts in made.scores.values())
    print(f"{made.records:,} records, {made.answers:,} answers, {scores:,} scores computed again")
    for name, n in made.missing.items():
        print(
            f"{name}: {n} records left out, since the data they were made with is not here under "
            "that name"
        )
    print(*made.faults or ["no difference"], sep="\n")
    return int(bool(made.faults))


def compare(arguments: argparse.Namespace) -> None:
    """For every condition in both: how many answers agree, and how far scores differ."""
    from rag_repro.commands import differences

    print(differences.text(arguments.a, arguments.b))


def registration(arguments: argparse.Namespace) -> int:
    """`write` registers the claims that are named (main: the headline ones) and, anew, what has no
    record yet or was refused; those of the testbed on worlds E and F. --check recomputes every
    hash, or those of the claims and tiers that are named; of public tests it needs the data."""
    from rag_repro.book_folders import here
    from rag_repro.data import ENVIRONMENT
    from rag_repro.data.public.record import MissingFile
    from rag_repro.study import manifests, registering, registration
    from rag_repro.study.conditions import TIERS
    from rag_repro.study.services import Workshop
    from rag_repro.words import choices

    root, workshop = here().records.parent, Workshop(data_dir=arguments.data)
    to_write = arguments.claims[:1] == ["write"]
    named = arguments.claims[to_write:]
    chosen = registering.headline() if named == ["main"] else named
    if arguments.check or not to_write:
        tests, unchecked = registration.read(root), []
        known = dict.fromkeys(test.claim for test in tests)
        for name in named:
            if name not in (*known, "main"):
                raise ValueError(f"no registered test of a claim {name!r}{choices(name, known)}")
        tests = [test for test in tests if test.claim in (chosen or known)]
        tests = [test for test in tests if test.tier in (arguments.tier or TIERS)]
        found = [*registering.problems(root)]
        for test in tests:
            try:
                found += registering.problems_of(test, workshop, root)
            except MissingFile:
                unchecked.append(test)
        tests, package = [t for t in tests if t not in unchecked], manifests.package()
        current = sum(test.package == package for test in tests)
        told = (
            f"{len(tests)} registered tests are as written, {current} with rag_repro/ as it is here"
        )
        print("\n".join(found) or told)
        if unchecked:
            print(
                "not checked, since their questions are not here; name the folder of real data "
                f"with {ENVIRONMENT} or --data: {', '.join(test.key for test in unchecked)}"
            )
        return 1 if found else 0
    every = [
        registration.Registration(name, tier, arguments.split)
        for name in chosen
        for tier in arguments.tier or TIERS[:2]
    ]
    asked = [test for test in every if arguments.tier or registration.deciding(test)]
    for key in registering.write(root, workshop, asked):
        log.info("registered: %s", key)
    for key, why in registration.refusals(root).items():
        log.warning("not registered: %s: no record could decide it: %s", key, why)
    return 0
