"""What each public data set is, where it comes from, and what to beware of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...words import nearest
from .errors import UnknownName


@dataclass(frozen=True, slots=True)
class Official:
    """A file name under which the authors publish a data set, and its format."""

    file: str
    format: str


@dataclass(frozen=True, slots=True)
class Source:
    """One data set.

    full_size: questions of the official file (None: not known).
    corpus: file in the project's layout whose passages join the pool.
    official: names to look for where the project's file is not there.
    gold_optional: a question may be without gold passages.
    multi_hop: gold passages are given roles.
    first_docs: only so many passages of each question are used.
    file: the project's file, where another than `<name>.jsonl.gz`.
    over: the data set whose corpus is searched; questions without an answer in it are left out.
    recurring: only the questions that `data.recurring` has of it.
    """

    name: str
    title: str
    paper: str
    source: str
    licence: str
    split: str
    full_size: int | None = None
    caveats: tuple[str, ...] = ()
    corpus: str | None = None
    official: tuple[Official, ...] = ()
    gold_optional: bool = False
    multi_hop: bool = False
    first_docs: int | None = None
    file: str | None = None
    over: str | None = None
    recurring: bool = False

    @property
    def project_file(self) -> str:
        return self.file or f"{self.name}.jsonl.gz"


_SUBSET = "a subset: not comparable with published numbers on the full set"

_HOTPOT = {
    "title": "HotpotQA",
    "paper": "Yang et al. 2018",
    "licence": "CC BY-SA 4.0",
    "multi_hop": True,
}
_WIKI = {
    "title": "2WikiMultihopQA",
    "paper": "Ho et al. 2020",
    "licence": "Apache-2.0; passages are Wikipedia text, CC BY-SA",
    "multi_hop": True,
}
_NQ = {
    "title": "Natural Questions (NQ-open), as in Lost in the Middle",
    "paper": "Kwiatkowski et al. 2019; Lee et al. 2019; Liu et al. 2024",
    "licence": "CC BY-SA 3.0 as generally given; passages are Wikipedia text, CC BY-SA",
    "split": "NQ-open validation questions",
    "full_size": 2655,
}
_AMBIG = {
    "paper": "Min et al. 2020",
    "source": "agential-ai/agential",
    "licence": "CC BY-SA 3.0",
    "split": "validation",
    "full_size": 2002,
    "gold_optional": True,
}
_OVER_NQ = {
    **_AMBIG,
    "source": "agential-ai/agential; passages of nq",
    "file": "ambignq.jsonl.gz",
    "over": "nq",
}
_SOME_HAVE_AN_ANSWER = (
    "the passages are NQ's pool, gathered for other questions: of 1,166 questions only those are "
    "here whose answer stands in some passage, perhaps by chance"
)
_UNITED = "answers unite all annotators' answers; interpretations keep the readings apart"
_GOLD_FIRST = (
    "the gold passage is always the first candidate: shuffle or move it before it is read in order"
)
_NO_ALIASES = "one answer string a question: the official answer aliases are missing"


def _litm(n: int) -> tuple[Official, ...]:
    """Lost in the Middle's files for n passages, the gold one first."""
    stem = f"nq-open-{n}_total_documents_gold_at_0.jsonl"
    return (Official(f"{stem}.gz", "nq"), Official(stem, "nq"))


_ALL = (
    Source(
        "hotpotqa",
        **_HOTPOT,
        source="noahshinn/reflexion, screemix/Wikontic, AdelWang/MIGRES (distractor setting)",
        split="validation",
        full_size=7405,
        caveats=(_SUBSET, "hop order is not annotated: gold passages have no hop"),
        official=(Official("hotpot_dev_distractor_v1.json", "hotpotqa"),),
    ),
    Source(
        "hotpotqa_train",
        **_HOTPOT,
        source="salesforce/BOLAA, zjunlp/KnowAgent (distractor setting)",
        split="train",
        full_size=90447,
        caveats=(_SUBSET, "four questions have fewer than 10 passages"),
        official=(Official("hotpot_train_v1.1.json", "hotpotqa"),),
    ),
    Source(
        "hotpotqa_fullwiki",
        **_HOTPOT,
        source="saptarshi059/TTS-project (fullwiki setting, inferred from the data)",
        split="validation",
        full_size=7405,
        caveats=(
            _SUBSET,
            "retrieved passages: gold ones are often missing; gold passages are those with a gold "
            "title anywhere in the pooled corpus, the others are in meta.gold_not_in_corpus",
        ),
        official=(Official("hotpot_dev_fullwiki_v1.json", "hotpotqa"),),
        gold_optional=True,
    ),
    Source(
        "2wikimultihopqa",
        **_WIKI,
        source="AdelWang/MIGRES, saptarshi059/TTS-project",
        split="validation",
        full_size=12576,
        caveats=(_SUBSET, _NO_ALIASES),
        official=(
            Official("2wikimultihopqa/dev.json", "2wikimultihopqa"),
            Official("data_ids_april7/dev.json", "2wikimultihopqa"),
        ),
    ),
    Source(
        "2wikimultihopqa_train",
        **_WIKI,
        source="AdelWang/MIGRES",
        split="train",
        full_size=167454,
        caveats=(_SUBSET, _NO_ALIASES),
        official=(
            Official("2wikimultihopqa/train.json", "2wikimultihopqa"),
            Official("data_ids_april7/train.json", "2wikimultihopqa"),
        ),
    ),
    Source(
        "2wikimultihopqa_open",
        **_WIKI,
        source="peterbaile/lag, circlemind-ai/fast-graphrag; corpus OSU-NLP-Group/HippoRAG",
        split="validation",
        full_size=1000,
        caveats=(
            _SUBSET,
            _NO_ALIASES,
            "no candidates; 42 questions have neither kind nor evidences",
            "some questions are also in 2wikimultihopqa, under the same id",
        ),
        corpus="2wikimultihopqa.corpus.jsonl.gz",
    ),
    Source(
        "musique",
        title="MuSiQue-Answerable",
        paper="Trivedi et al. 2022",
        source="AdelWang/MIGRES, screemix/Wikontic",
        licence="CC BY 4.0",
        split="validation",
        full_size=2417,
        caveats=(_SUBSET, "2-hop questions are a little over-represented"),
        official=(
            Official("musique_ans_v1.0_dev.jsonl", "musique"),
            Official("data/musique_ans_v1.0_dev.jsonl", "musique"),
        ),
        multi_hop=True,
    ),
    Source(
        "nq",
        **_NQ,
        source="nelson-liu/lost-in-the-middle (oracle); distractors Newiz430/Psi-RAG, "
        "GaurisankarJ/reason_over_search",
        caveats=(
            _SUBSET,
            "the one candidate is the gold passage; the corpus adds 100-word passages retrieved "
            "for NQ questions, unlabelled: some contain an answer",
        ),
        corpus="nq.corpus.jsonl.gz",
        official=(
            Official("nq-open-oracle.jsonl.gz", "nq"),
            Official("nq-open-oracle.jsonl", "nq"),
        ),
    ),
    Source(
        "nq10",
        **_NQ,
        source="the first 10 passages of nq20 (the same construction in the source)",
        caveats=(_SUBSET, _GOLD_FIRST),
        official=_litm(10),
        first_docs=10,
        file="nq20.jsonl.gz",
    ),
    Source(
        "nq20",
        **_NQ,
        source="ViktorTorp/lost-in-the-middle (passages only)",
        caveats=(_SUBSET, _GOLD_FIRST),
        official=_litm(20),
    ),
    Source(
        "nq30",
        **_NQ,
        source="nelson-liu/lost-in-the-middle",
        caveats=(_GOLD_FIRST, "the official file is needed"),
        official=_litm(30),
    ),
    Source(
        "popqa",
        title="PopQA",
        paper="Mallen et al. 2023",
        source="KennyCaty/NeuroPath; passages Newiz430/Psi-RAG",
        licence="MIT; passages are Wikipedia text, CC BY-SA",
        split="(one set)",
        full_size=14267,
        caveats=(
            _SUBSET,
            "two of 16 relations: place of birth, occupation",
            "gold marks the subject's and the answer's page; a quarter of the passages that are "
            "not gold contain an answer (meta.answer_in_nongold)",
            "the corpus is a pool retrieved for these questions, not all of Wikipedia",
            "the official file has no passages: an empty corpus, no gold",
        ),
        corpus="popqa.corpus.jsonl.gz",
        official=(Official("popQA.tsv", "popqa"),),
        gold_optional=True,
    ),
    Source(
        "ambignq",
        **_AMBIG,
        title="AmbigNQ (light)",
        caveats=(_SUBSET, "no passages: the corpus is empty", _UNITED),
        official=(
            Official("dev_light.json", "ambignq"),
            Official("ambignq/dev_light.json", "ambignq"),
        ),
    ),
    Source(
        "ambignq_nq",
        **_OVER_NQ,
        title="AmbigNQ (light) over the passages of NQ",
        caveats=(_SUBSET, _SOME_HAVE_AN_ANSWER, _UNITED),
    ),
    Source(
        "ambignq_asked",
        **_OVER_NQ,
        title="100 questions of ambignq_nq, drawn at random: asked before",
        caveats=(_SUBSET, _SOME_HAVE_AN_ANSWER, _UNITED),
        recurring=True,
    ),
    Source(
        "ambignq_again",
        **_OVER_NQ,
        title="the 200 questions of ambignq_nq most like one of ambignq_asked",
        caveats=(_SUBSET, _SOME_HAVE_AN_ANSWER, _UNITED),
        recurring=True,
    ),
    Source(
        "strategyqa",
        title="StrategyQA",
        paper="Geva et al. 2021",
        source="eladsegal/strategyqa; paragraphs AdelWang/MIGRES, omerlevi2/NLP_Project",
        licence="MIT; passages are Wikipedia text, CC BY-SA",
        split="148 of the authors' dev, 119 of their train questions",
        full_size=2290,
        caveats=(
            _SUBSET,
            "all candidates are gold: retrieve from the corpus, whose passages are all evidence "
            "of some question",
        ),
        corpus="strategyqa.corpus.jsonl.gz",
        official=(Official("strategyqa_train.json", "strategyqa"),),
        gold_optional=True,
    ),
    Source(
        "iirc",
        title="IIRC",
        paper="Ferguson et al. 2020",
        source="StonyBrookNLP/ircot (demonstrations)",
        licence="none stated in the sources read; annotations Apache-2.0",
        split="train",
        full_size=13441,
        caveats=("ten demonstrations: for prompts and smoke tests, not for scores",),
        official=(
            Official("iirc/dev.json", "iirc"),
            Official("iirc_train_dev/dev.json", "iirc"),
        ),
        gold_optional=True,
    ),
    Source(
        "ircot_demos",
        title="IRCoT demonstrations (HotpotQA, 2WikiMultihopQA, MuSiQue)",
        paper="Trivedi et al. 2023",
        source="StonyBrookNLP/ircot",
        licence="annotations Apache-2.0; questions as their data sets",
        split="train",
        caveats=("training questions: for prompts, not for scores",),
        multi_hop=True,
    ),
    Source(
        "dureader",
        title="DuReader 2.0, search questions (Chinese)",
        paper="He et al. 2018",
        source="baidu/DuReader (demo)",
        licence="Apache-2.0; passages are web pages of third parties: research use only",
        split="60 of the train, 61 of the dev questions",
        caveats=(
            _SUBSET,
            "not the 200 questions of LongBench, whose form the official reader takes",
            "answers are mostly summaries: ROUGE-L or F1, not exact match",
        ),
        official=(
            Official("dureader.jsonl", "dureader"),
            Official("data/dureader.jsonl", "dureader"),
        ),
        gold_optional=True,
    ),
)

SOURCES: Mapping[str, Source] = {s.name: s for s in _ALL}


def source(name: str) -> Source:
    """The entry of a data set; an unknown name is refused with the nearest one."""
    if name in SOURCES:
        return SOURCES[name]
    raise UnknownName(
        f"no public data set {name!r}{nearest(name, SOURCES)}; there are: {', '.join(SOURCES)}"
    )
