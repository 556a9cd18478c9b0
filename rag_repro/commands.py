"""What each command does: thin wrappers over the package, which import what they need inside.

Their docstrings end the help of the command.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study.papers import Cell
    from .study.services import Workshop


def _results(arguments: argparse.Namespace) -> Path:
    from .publish.places import here

    return arguments.results or here().records


def run(arguments: argparse.Namespace) -> int:
    """Finished questions are kept and not asked again; primary conditions run first."""
    from .study import campaign

    if arguments.join and (arguments.estimate or arguments.shard != (1, 1)):
        raise ValueError("--join joins what shards left; leave --shard and --estimate out")
    cells = _cells(arguments, conditions=arguments.condition)
    workshop, results = _workshop(arguments), _results(arguments)
    asked = {"n": arguments.n, "shard": arguments.shard}
    if arguments.join:
        campaign.join(cells, workshop, results)
    elif arguments.estimate:
        print(campaign.estimate(cells, workshop, results, **asked))
    else:
        campaign.run(cells, workshop, results, **asked, batch_size=arguments.batch_size)
    return 0


def _cells(arguments: argparse.Namespace, **more: Any) -> list[Cell]:
    """The conditions that were chosen, of exhibits without times."""
    from .study import campaign

    return campaign.select(
        arguments.exhibits,
        tier=arguments.tier,
        role=arguments.role,
        datasets=arguments.dataset,
        methods=arguments.method,
        seeds=arguments.seeds,
        **more,
    )


def _workshop(arguments: argparse.Namespace) -> Workshop:
    from .study.services import Workshop

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
    from . import workflow
    from .publish.places import here
    from .study import grid as jobs

    if not arguments.dry_run and (arguments.no_trial or arguments.folder):
        raise ValueError("--no-trial and --folder go with: rag-repro grid ... --dry-run")
    if arguments.chapter and arguments.results:
        raise ValueError("chapters show the checkout's records; leave --chapter or --results out")
    places = here()
    for name in arguments.chapter:
        places.source(name)
    cells = _cells(arguments)
    workshop = _workshop(arguments)
    settings = jobs.GridSettings(
        tuple(arguments.exhibits),
        _results(arguments),
        data=arguments.data,
        seeds=tuple(arguments.seeds),
        device=arguments.device,
        dtype=arguments.dtype,
        batch_size=arguments.batch_size,
        in_flight=arguments.in_flight,
    )
    plan = jobs.plan(
        cells,
        workshop,
        settings,
        n=arguments.n,
        shards=arguments.shards,
        chapters=arguments.chapter,
    )
    trial = arguments.dry_run and not arguments.no_trial
    print(workflow.told(plan, workshop, settings, trial=trial), flush=True)
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
    beside that of the records. Nothing else should be at work on the machine meanwhile. What was
    timed by other methods, or on another machine, is not continued: move it away."""
    from .study import campaign, timing
    from .study.services import Workshop

    cells = campaign.select(
        [arguments.exhibit],
        tier=arguments.tier,
        role=arguments.role,
        datasets=arguments.dataset,
        methods=arguments.method,
        timed=True,
    )
    workshop = Workshop(
        data_dir=arguments.data, device=arguments.device, dtype=arguments.dtype, batch_size=1
    )
    results = _results(arguments)
    timing.with_bar(cells, workshop, results, n=arguments.n, repeats=arguments.repeats)


def exhibit(arguments: argparse.Namespace) -> None:
    """Columns of the CSV: exhibit, tier, dataset, method, what the exhibit varies, metric,
    paper (as printed), ours with lo and hi (95 %), n, and the difference to the baseline."""
    from .report import exhibits, tables
    from .study import papers
    from .study.scores import Results

    paper, exhibit = papers.exhibit(arguments.exhibit)
    rows = exhibits.rows(paper, exhibit, Results(_results(arguments)), arguments.tier)
    print(tables.text(rows, arguments.format), end="")


def claims(arguments: argparse.Namespace) -> None:
    """Columns: id, paper, exhibit, claim, tier, verdict, effect, lo, hi, n, and more."""
    from .report import ledger
    from .study.scores import Results

    rows = ledger.rows(Results(_results(arguments)), arguments.paper, arguments.tier)
    print(ledger.text(rows, arguments.format), end="")


def show(arguments: argparse.Namespace) -> None:
    """Texts of public questions and passages are read from the local data, where it is."""
    from .report import show

    print(
        show.question(
            arguments.exhibit,
            arguments.question,
            _results(arguments),
            data_dir=arguments.data,
            tier=arguments.tier,
        )
    )


def status(arguments: argparse.Namespace) -> None:
    """One line for each exhibit and tier."""
    from .report import progress

    print(progress.text(_results(arguments)))


def compare(arguments: argparse.Namespace) -> None:
    """For every condition in both: how many answers agree, and how far scores differ."""
    from .report import compare

    print(compare.text(arguments.a, arguments.b))


def train(arguments: argparse.Namespace) -> None:
    """The headline seed goes to artifacts/NAME, others to results/local/artifacts/NAME-SEED,
    and so do recipes that are marked as local."""
    from .training import run
    from .training.recipes import recipe

    chosen = recipe(arguments.name).on(arguments.base)
    seed = chosen.seeds[0] if arguments.seed is None else arguments.seed
    prepared = run.prepare(chosen, seed, arguments.data, _results(arguments), arguments.device)
    if arguments.estimate:
        print(prepared.cost())
        return
    folder = arguments.out or run.folder_of(chosen, seed)
    if run.is_made(prepared, folder):
        print(f"{folder} is of this very recipe, seed and base already")
    else:
        print(run.train(prepared, folder))


def tune(arguments: argparse.Namespace) -> None:
    """Never on test questions. Prints the threshold under which the recorded questions would have
    scored best; of an exhibit that varies settings of dynamic retrieval, every row's best value,
    and what its controls need to give as many alarms. What a condition uses stands in its
    paper.yaml."""
    from .study import papers, tuning, tuning_dynamic

    if tuning_dynamic.varies(papers.exhibit(arguments.exhibit)[1]):
        for dataset in arguments.dataset:
            print(dataset)
            for line in tuning_dynamic.chosen(arguments.exhibit, dataset, _results(arguments)):
                print(f"  {line}")
        return
    print(
        tuning.threshold(
            arguments.exhibit,
            arguments.popularity,
            arguments.dataset,
            _results(arguments),
            data_dir=arguments.data,
        )
    )


def serve_search(arguments: argparse.Namespace) -> None:
    """Until it is interrupted. Conditions search with it by its address: `retriever:
    http://127.0.0.1:8765`, with #pages=5 to read the best 5 sentences of each page."""
    import logging

    from .retrieval.served import SearchServer
    from .study.services import Workshop

    workshop = Workshop(data_dir=arguments.data)
    corpus = workshop.dataset(arguments.dataset, None).corpus
    with SearchServer(
        workshop.retriever(arguments.retriever, corpus),
        host=arguments.host,
        port=arguments.port,
        latency=arguments.latency,
    ) as server:
        log = logging.getLogger(__name__)
        log.info("%d passages of %s at %s", len(corpus), corpus.name, server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            log.info("no longer served")


def corpus(arguments: argparse.Namespace) -> int:
    """`build` goes on where an earlier one was interrupted, and counts at the end; `card` prints
    what is known of the loaded corpus; `check` counts, reads a sample of passages back, and
    compares searches with bm25s and FAISS (status 1 where a passage is not what it was). Milvus
    is embedded, in a folder of the cache, or at --address."""
    import json

    from .study import corpora
    from .study.services import Workshop

    if arguments.anew and arguments.action != "build":
        raise ValueError("--anew goes with: rag-repro corpus build DATASET")
    workshop = Workshop(data_dir=arguments.data)
    dataset = workshop.dataset(arguments.dataset, None)
    made = corpora.place(arguments.retriever, dataset.corpus, workshop, arguments.address)
    if arguments.action == "build":
        from tqdm import tqdm

        with tqdm(total=len(dataset.corpus), unit="p", leave=False) as bar:
            put = corpora.build(
                made, anew=arguments.anew, report=lambda done: bar.update(done - bar.n)
            )
        print(f"{made.count():,} passages of {dataset.corpus.name}, {put:,} of them put in now")
        print(f"{made.name} at {made.server.where}")
        return 0
    if arguments.action == "card":
        card = made.stored_card
        if card is None:
            made.open()  # says what to do
        facts = {"collection": made.name, "at": made.server.where, "held": made.count()}
        print(json.dumps({**facts, **(card or {})}, indent=1, ensure_ascii=False))
        return 0
    queries = [q.text for q in dataset.questions[: arguments.queries]]
    checked = corpora.check(made, queries, arguments.sample)
    print(checked.text())
    if checked.differing:
        print("not what they were: " + ", ".join(checked.differing[:5]))
    return 1 if checked.differing else 0


def growth(arguments: argparse.Namespace) -> None:
    """Each size in a process of its own, written when it is done; what is written is not measured
    again. It stops at the size that takes more than --minutes of processor time or --memory. The
    record is results/growth/RETRIEVER.json; one of another machine is not continued."""
    from .study import growth

    growth.run(
        arguments.retriever,
        arguments.sizes,
        growth.beside(_results(arguments)),
        queries=arguments.queries,
        minutes=arguments.minutes,
        gigabytes=arguments.memory,
    )


def chapter(arguments: argparse.Namespace) -> None:
    """A default run is kept in book/chapters/, any other in results/local/chapters/."""
    from .publish import execute, parameters

    given = {name: parameters.parse_value(value) for name, value in arguments.parameter}
    out = execute.execute(arguments.name, given, kernel=arguments.kernel, out=arguments.out)
    print(out)


def book(arguments: argparse.Namespace) -> None:
    """Prints the path of the front page."""
    from .publish import build

    print(build.build_book(only=arguments.only, force=arguments.force, jobs=arguments.jobs))


def data(arguments: argparse.Namespace) -> None:
    """Cards say source, licence, splits, counts, hashes, caveats and how to get the data. Only
    `fetch` downloads anything: it prints the paths of the files, goes on where it was
    interrupted, and refuses wrong bytes."""
    import json

    from .data import cards, fetch

    action, name = arguments.action, arguments.name
    if action != "fetch" and (arguments.url or arguments.sha256):
        raise ValueError("--url and --sha256 go with: rag-repro data fetch NAME")
    if action == "fetch" and arguments.json:
        raise ValueError("--json goes with: rag-repro data list, rag-repro data card NAME")
    if action == "list" and name is not None:
        raise ValueError(f"`list` takes no name; for one data set: rag-repro data card {name}")
    if action != "list" and name is None:
        raise ValueError(
            f"name a data set: rag-repro data {action} NAME; `rag-repro data list` has them"
        )
    if action == "fetch":
        found = fetch.fetch(name, arguments.data, url=arguments.url, sha256=arguments.sha256)
        print("\n".join(map(str, found)))
    elif arguments.json:
        facts = cards.rows(arguments.data) if name is None else cards.card(name, arguments.data)
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    elif action == "list":
        print(cards.listing(arguments.data))
    else:
        print(cards.describe(name, arguments.data))
