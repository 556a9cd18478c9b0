"""What conditions rest on: data, indexes and their growth, adapters, thresholds."""

from __future__ import annotations

import argparse

from rag_repro.commands.folders import held_in, results_of, written_to


def data(arguments: argparse.Namespace) -> None:
    """Cards say source, licence, splits, counts, hashes, caveats and how to get the data. Only
    `fetch` downloads anything: it prints the paths of the files, goes on where it was
    interrupted, and refuses wrong bytes."""
    import json

    from rag_repro.data import cards, fetch

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


def train(arguments: argparse.Namespace) -> None:
    """The headline seed goes to artifacts/NAME, others to results/local/artifacts/NAME-SEED,
    and so do recipes that are marked as local, and what is made over another base
    (NAME-over-BASE)."""
    from rag_repro.study.files import alone, check_output
    from rag_repro.training import run
    from rag_repro.training.recipes import recipe

    if arguments.out:
        check_output(arguments.out / "adapter")
    chosen = recipe(arguments.name).on(arguments.base)
    seed = chosen.seeds[0] if arguments.seed is None else arguments.seed
    prepared = run.prepare(chosen, seed, arguments.data, results_of(arguments), arguments.device)
    if arguments.estimate:
        print(prepared.cost())
        return
    folder = arguments.out or run.folder_of(chosen, seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Two runs of one folder would take each other's state.
    with alone(folder.with_name(f".{folder.name}.lock")):
        if run.is_made(prepared, folder):
            print(f"{folder} is of this very recipe, seed and base already")
        else:
            print(run.train(prepared, folder))


def tune(arguments: argparse.Namespace) -> None:
    """Never on test questions. Prints the threshold under which the recorded questions would have
    scored best; of an exhibit that varies settings of dynamic retrieval, every row's best value,
    and what its controls need to give as many alarms. What a condition uses stands in its
    paper.yaml."""
    from rag_repro.bars import waiting
    from rag_repro.study import papers, tuning

    if tuning.varies(papers.exhibit(arguments.exhibit)[1]):
        for dataset in arguments.dataset:
            print(dataset)
            with waiting(f"reading the records of {dataset}"):
                lines = list(tuning.chosen(arguments.exhibit, dataset, held_in(arguments)))
            for line in lines:
                print(f"  {line}")
        return
    with waiting(f"reading the records of {arguments.exhibit}"):
        told = tuning.threshold(
            arguments.exhibit,
            arguments.popularity,
            arguments.dataset,
            held_in(arguments),
            data_dir=arguments.data,
        )
    print(told)


def serve_search(arguments: argparse.Namespace) -> None:
    """Until it is interrupted. Conditions search with it by its address: `retriever:
    http://127.0.0.1:8765`, with #pages=5 to read the best 5 sentences of each page. So does
    `ask(..., retriever="http://127.0.0.1:8765")`. A service of your own takes its place where it
    answers POST /search {"query": text, "count": n} with {"results": [{"id": ..., "title": ...,
    "snippet": text}, ...]}, best first; rag_repro/retrieval/served.py has the rest of the form."""
    import logging

    from rag_repro.retrieval.served import SearchServer
    from rag_repro.study.services import Workshop

    workshop = Workshop(data_dir=arguments.data)
    corpus = workshop.dataset(arguments.dataset, None).corpus
    server = SearchServer(
        workshop.retriever(arguments.retriever, corpus),
        host=arguments.host,
        port=arguments.port,
        latency=arguments.latency,
    )
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

    from rag_repro.study import corpora
    from rag_repro.study.services import Workshop

    if arguments.anew and arguments.action != "build":
        raise ValueError("--anew goes with: rag-repro corpus build DATASET")
    workshop = Workshop(data_dir=arguments.data)
    dataset = workshop.dataset(arguments.dataset, None)
    made = corpora.place(arguments.retriever, dataset.corpus, workshop, arguments.address)
    if arguments.action == "build":
        from rag_repro.bars import Bar

        if arguments.anew:
            made.drop()
        with Bar(total=len(dataset.corpus), desc=dataset.corpus.name, unit="p") as bar:
            put = made.load(report=lambda done: bar.update(done - bar.n))
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
    lines, differing = corpora.check(made, queries, arguments.sample)
    print(*lines, sep="\n")
    if differing:
        print("not what they were: " + ", ".join(differing[:5]))
    return 1 if differing else 0


def growth(arguments: argparse.Namespace) -> None:
    """Each size in a process of its own, written when it is done; what is written is not measured
    again. It stops at the size that takes more than --minutes of processor time or --memory. The
    record is results/local/growth/RETRIEVER.json, with --continue results/growth/RETRIEVER.json;
    one of another machine is not continued. Prints a line for each size in the record."""
    from rag_repro.study import growth
    from rag_repro.study.files import check_output

    path = growth.file_of(written_to(arguments).parent / "growth", arguments.retriever)
    check_output(path)
    measured = growth.run(
        arguments.retriever,
        arguments.sizes,
        path.parent,
        queries=arguments.queries,
        minutes=arguments.minutes,
        gigabytes=arguments.memory,
    )
    print("\n".join(map(growth.describe, measured.sizes)))
    print(path)
