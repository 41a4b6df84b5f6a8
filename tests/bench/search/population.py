"""Population-based training against random search on a training that runs here (population.c): the best loss that each
comes to with as many trial-steps, and random search with four times as many."""
import json
import pathlib
import statistics
import subprocess
import tempfile

import speed

SIZES = (4, 8, 16)


def study(program, rule, seed, population):
    run = subprocess.run([program, rule, str(seed), str(population)], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def measure(top, build, seeds):
    results = []
    with tempfile.TemporaryDirectory(prefix="dt-search-bench.") as work:
        program = pathlib.Path(work) / "population"
        speed.build_program(top, build, "population.c", program)
        for size in SIZES:
            methods = {"pbt": ("pbt", size), "random": ("none", size), "random, 4 x": ("none", 4 * size)}
            results.append({"population": size, "seeds": seeds, "methods": {
                name: [study(program, rule, seed, n) for seed in range(1, seeds + 1)]
                for name, (rule, n) in methods.items()}})
    return results


def page(results):
    lines = ["| population | method | trial-steps | trials | loss, mean | pbt is better in |", "|---|---|---|---|---|---|"]
    for r in results["populations"]:
        own = r["methods"]["pbt"]
        for name, studies in r["methods"].items():
            mean = {key: statistics.mean(s[key] for s in studies) for key in ("steps", "trials", "loss")}
            wins = sum(a["loss"] < b["loss"] for a, b in zip(own, studies))
            better = "" if name == "pbt" else "%d of %d" % (wins, r["seeds"])
            lines.append("| %d | %s | %.0f | %.0f | %.4f | %s |" % (r["population"], name, mean["steps"], mean["trials"],
                                                                  mean["loss"], better))
    return "Population-based training and random search\n\n" + "\n".join(lines) + "\n"
