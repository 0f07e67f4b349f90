"""The jobs of benchmarks: what their workers run, and nothing else, each named by where it is."""

from __future__ import annotations

__all__ = ["JOBS"]

JOBS = {
    name: name
    for name in (
        "benchmarks.attention.trial:run",
        "benchmarks.common.making:convert",
        "benchmarks.common.making:make",
        "benchmarks.containers.trial:trial",
        "benchmarks.families.trial:run",
        "benchmarks.judges.trial:run",
        "benchmarks.localization.trial:run",
        "benchmarks.localization_cost:measure_memory",
        "benchmarks.localization_cost:time_both",
        "benchmarks.onnx_to_keras:measure",
        "benchmarks.repair.older.making:make",
        "benchmarks.repair.older.making:make_faulty",
        "benchmarks.repair.trial:run",
        "benchmarks.repair_cost:time_repair",
        "benchmarks.rightness.trial:run",
        "benchmarks.systematic.trial:run",
        "benchmarks.throughput:bare_loop",
        "benchmarks.trace.bisected:run",
        "benchmarks.trace.faulty_passes:run",
        "benchmarks.trace.plants:run",
        "benchmarks.tvm_conformance:judge",
        "benchmarks.tvm_cost:measure",
        "conrepair.application.jobs.description:build",
        "conrepair.application.jobs.conversion:convert",
        "conrepair.application.jobs.execution:execute",
    )
}
