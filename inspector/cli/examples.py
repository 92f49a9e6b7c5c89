"""Command lines to start from, shown at the end of each verb's help."""

from __future__ import annotations

from schema.backends import DEFAULT, partitioners

_ALIAS, _DEMO = DEFAULT.partitioners[0].alias, partitioners()[0].alias

EXAMPLES: dict[str, tuple[str, ...]] = {
    "summary": (
        "etscope summary model.pte",
        "etscope summary model.pte model.etrecord run.etdp run.debug",
        "etscope summary runs/mobilenet --format json",
    ),
    "profile": (
        "etscope profile model.pte model.etrecord run.etdp --top 20",
        "etscope profile run.etdp --source-time-scale cycles",
        "etscope profile runs/mobilenet --format csv -o events.csv",
    ),
    "delegation": (
        "etscope delegation model.pte",
        "etscope delegation model.pte model.etrecord --method forward",
    ),
    "memory": (
        "etscope memory model.pte",
        "etscope memory model.pte model.etrecord --all",
    ),
    "roofline": (
        "etscope roofline model.pte model.etrecord run.etdp",
        "etscope roofline runs/mobilenet --calibrate --threads 4",
        "etscope roofline model.pte --format csv -o work.csv",
    ),
    "size": (
        "etscope size model.pte --top 20",
        "etscope size model.pte weights.ptd --duplicates",
        "etscope size model.pte --format tsv -o parts.tsv",
    ),
    "table": (
        "etscope table operators model.pte model.etrecord run.etdp --sort mean:desc --top 20",
        "etscope table operators model.pte run/run.etdp --columns operator,mean,flops,bytes,limit",
        "etscope table memory model.pte --filter 'size>1MiB' --columns value,size,made_by",
        "etscope table compare A B",
        "etscope table range model.pte run.etdp --from 10us --to 250us --run 3",
    ),
    "tensors": (
        "etscope tensors model.pte --no-values",
        "etscope tensors run.etdp run.debug --run 1",
    ),
    "graph": (
        "etscope graph model.pte model.etrecord --list",
        "etscope graph model.pte --format json",
    ),
    "check": (
        "etscope check model.pte model.etrecord run.etdp run.debug",
        "etscope check runs/mobilenet || echo 'not one set'",
    ),
    "gap": (
        "etscope gap model.pte model.etrecord run.etdp run.debug",
        "etscope gap runs/mobilenet --sort own --top 10",
        "etscope gap runs/mobilenet --reference exported --rtol 1e-5 --format json",
    ),
    "diff": (
        "etscope diff old.pte new.pte",
        "etscope diff runs/before runs/after",
        "etscope diff --base old.pte old.etdp --new new.pte new.etdp",
    ),
    "compare": (
        "etscope compare old.pte new.pte --measure 16",
        f"etscope compare runs/portable runs/{_ALIAS} runs/int8 --html compare.html",
        "etscope compare old.pte,old.etrecord,old.etdp new.pte,new.etrecord,new.etdp",
    ),
    "trace": (
        "etscope trace run.etdp -o trace.json",
        "etscope trace model.pte model.etrecord run.etdp -o trace.json",
        "etscope trace run.etdp --from 10us --to 250us -o part.json",
    ),
    "report": (
        "etscope report model.pte model.etrecord run.etdp run.debug -o report.html",
        "etscope report runs/mobilenet -o report.html --force",
    ),
    "extract": (
        "etscope extract model.pte",
        "etscope extract model.pte --what payloads -o parts",
    ),
    "split": (
        "etscope split model.pte -o parts",
        "etscope split model.pte -o parts --force --format json",
    ),
    "merge": (
        "etscope merge parts/model.pte parts/model.ptd -o whole.pte",
        "etscope merge model.pte encoder.ptd decoder.ptd -o whole.pte",
    ),
    "export": (
        "etscope export model.pte model.etrecord -o graphs.json",
        "etscope export runs/mobilenet --as anonymised --to for-the-bug-report",
    ),
    "compile": (
        "etscope compile model.py:build -o build",
        "etscope compile model.py:build -o build --python ~/venvs/model/bin/python",
        "etscope compile model.pt2 -o build --memory-planner greedy --force",
        f"etscope compile old.etrecord -o build --partitioner {_DEMO} --deny-op 'aten.add.*'",
        "etscope compile --recipe build/recipe.json -o stock --toolchain executorch",
    ),
    "bisect": (
        "etscope bisect build -o fixed --bound loads",
        "etscope bisect build/recipe.json -o fixed --bound 'output.max_abs<=1e-3' -v",
        "etscope bisect build/recipe.json -o fixed --bound 'latency<=5ms' --runs 50 --threads 1",
    ),
    "run": (
        "etscope run model.pte -o run --inputs inputs.pt",
        "etscope run model.pte -o run --runs 20 --warmup 3 --threads 1 --no-trace",
        "etscope run model.pte -o run --debug-level intermediate --record model.etrecord",
        "etscope run model.bpte -o run --bundled 2",
        "etscope run stream.pte -o run --sequence data.py:chunks",
        "etscope run model.pte -o run --library operators.py",
        "etscope run model.pte -o run --toolchain executorch --toolchain-python ~/et/bin/python",
    ),
    "llm": (
        "etscope llm export model.use_kv_cache=true -o gpt",
        "etscope llm export llama.yaml quantization.qmode=8da4w -o llama",
        "etscope llm run llama --prompt 'Once upon a time' --max-new-tokens 64",
        "etscope llm gap llama --text book.txt",
        "etscope llm plan llama.yaml --memory 512",
    ),
    "device": (
        "etscope device add pi --ssh pi@raspberrypi.local --runner"
        " '~/bin/executor_runner --model_path={program} --inputs={inputs} --output_file={output}"
        " --num_executions={runs} --etdump_path={etdump}'",
        "etscope device test pi",
    ),
    "verify": (
        "etscope verify model.bpte",
        "etscope verify model.bpte --method forward --rtol 1e-3 --atol 1e-5",
    ),
    "json": (
        "etscope json model.pte -o model.json",
        "etscope json model.json --segments model.pte -o changed.pte",
        "etscope json run.etdp",
    ),
    "step": (
        "etscope step model.pte --record model.etrecord",
        "etscope step model.pte --call 1 --to 12 --value 30 --save values.pt",
        "etscope step model.pte --replace 30=zeros --engine native",
    ),
    "eval": (
        "etscope eval model.pte,model.etrecord --data data.py:batches -o eval",
        "etscope eval model int8 --data data.py:batches --metric data.py:accuracy -o eval",
        "etscope eval int8 --data random --samples 32 --reference recorded -o eval --format json",
    ),
    "gate": (
        "etscope gate model.pte --require 'delegated>=98%' --require 'arena<=4MiB'",
        "etscope gate recipe.json --require 'gap.max_abs<=1e-3' --junit gate.xml",
        "etscope gate model.pte model.etrecord --gates gates.txt --history history.jsonl",
        "etscope gate new.pte --measure 12 --require 'latency<=1.1x baseline' --baseline old.pte",
    ),
    "sweep": (
        "etscope sweep recipe.json --grid rules.min_nodes=1,5 --grid memory_planner=naive,greedy"
        " -o sweep",
        f"etscope sweep recipe.json --grid partitioners=none,{_ALIAS} --runs 20 --gap -o sweep",
        "etscope sweep recipe.json --grid grid.json --cluster tcp://10.0.0.5:8786 -o sweep",
    ),
    "bundle": (
        "etscope bundle model.py:build -o model.bpte",
        "etscope bundle model.pte --module model.py:build --inputs a.pt --inputs b.pt -o m.bpte",
        "etscope bundle model.pte --inputs a.pt --expected outputs.pt -o model.bpte",
    ),
    "clean": ("etscope clean model.pte", "etscope clean model.pte --remove values"),
    "backends": (
        "etscope backends show",
        f"etscope backends show {_ALIAS}",
        "etscope backends plan model.py:build",
        f"etscope backends plan model.py:build --backend {_ALIAS}",
    ),
    "doctor": ("etscope doctor", "etscope doctor --threads 4 --format json"),
    "port": (
        "etscope port export.py",
        "etscope port export.py -o export_ported.py",
        "etscope port scripts notebooks --write",
    ),
    "inspector-cli": (
        "etscope inspector-cli --etdump_path run.etdp",
        "etscope inspector-cli --etdump_path run.etdp --etrecord_path model.etrecord"
        " --tsv_path events.tsv",
    ),
}


def epilog(verb: str) -> str:
    """Return the examples of a verb as the last paragraph of its help."""
    return "\n".join(["examples:", *(f"  {line}" for line in EXAMPLES[verb])])
