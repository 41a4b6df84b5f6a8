"""Warm start: a study that knows what earlier ones have found on other workloads of the same space. Of each family every
workload is left out once; the others are its past, each with what a search from the start, 20 trials with a seed of its
own, has tried. Trials to within 5 % of the table's best, mean over the seeds, with and without the past."""
import csv
import json
import statistics
import subprocess

TRIALS = 30

FAMILIES = {  # table, the SPEC to take the domains from, its column of workloads, rows that count
    "DL2": ("dl2_ps_worker_speed.csv", "dl2-resnet-50", "model", {}),
    "CM-DARE": ("cmdare_tf_ps_gce_speed.csv", "cmdare-resnet-15", "net", {}),
    "Scout": ("scout.csv", "scout-kmeans_bigdata_spark15", "job", {}),
    "Pollux": ("pollux_step_time.csv", "pollux-bert", "model", {"kind": "placements"}),
}
EACH = {"Scout": 4}  # every fourth job
DOMAINS = {"Pollux": {"local_batch": {"type": "int", "low": 1, "high": 4096, "log": True}}}


def workloads(family, path):
    _, _, column, rows = FAMILIES[family]
    with open(path, encoding="utf-8") as f:
        names = {row[column] for row in csv.DictReader(f) if all(row[c] == v for c, v in rows.items())}
    return sorted(names)[::EACH.get(family, 1)]


def spec_of(family, specs, workload):
    _, base, column, rows = FAMILIES[family]
    with open(specs / (base + ".json"), encoding="utf-8") as f:
        spec = json.load(f)
    spec["search"] = {"algorithm": "bayes", "max_configs": TRIALS, "min_configs": TRIALS, "max_failures": TRIALS,
                      "repeats": 0}
    spec["replay"]["where"] = {column: workload, **rows}
    if family in DOMAINS:
        spec["hyperparameters"] = DOMAINS[family]
    return spec


def trials(program, spec, table, past, seeds):
    run = subprocess.run([program, "simulate", "--spec=%s" % spec, "--table=%s" % table, "--seed=1", "--format=json",
                          "--repeat=%d" % seeds, *["--past=%s" % p for p in past]], stdout=subprocess.PIPE, check=True)
    return statistics.mean(s["trials_to_5pct"] or TRIALS + 1 for s in json.loads(run.stdout)["studies"])


def measure(program, specs, find_table, only, seeds, work):
    results = []
    for family, (table, _, _, _) in FAMILIES.items():
        path = find_table(table)
        if not path or (only and family.lower() not in only):
            continue
        paths = {}
        for name in workloads(family, path):
            paths[name] = work / ("warm-%d.json" % len(paths))
            paths[name].write_text(json.dumps(spec_of(family, specs, name)), encoding="utf-8")
        for name, spec in paths.items():
            past = [p for other, p in paths.items() if other != name]
            results.append({"family": family, "name": name, "seeds": seeds,
                            "cold": trials(program, spec, path, [], seeds),
                            "warm": trials(program, spec, path, past, seeds)})
    return results


def page(results):
    lines = ["| left out | cold | warm | ratio |", "|---|---|---|---|"]
    for family in FAMILIES:
        rows = [r for r in results["tables"] if r["family"] == family]
        for r in rows:
            lines.append("| %s, %s | %.1f | %.1f | %.2f |" % (family, r["name"], r["cold"], r["warm"],
                                                          r["warm"] / r["cold"]))
        if rows:
            cold, warm = (statistics.mean(r[key] for r in rows) for key in ("cold", "warm"))
            lines.append("| **%s, mean** | %.1f | %.1f | %.2f |" % (family, cold, warm, warm / cold))
    return "Trials to within 5 % of the best, mean\n\n" + "\n".join(lines) + "\n"
