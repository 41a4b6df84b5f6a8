"""Trials on a part of the data: node-seconds until a configuration near the best, with the quality asked for, has been run
on all of it. TrimTuner's table, which has every configuration on five sizes of the data:

  whole            dt-tune, every trial on all data
  fidelity         dt-tune, told that the number of samples is the fidelity
  tpe, hyperband   Optuna: TPE proposes, Hyperband says how far each goes from one size to the next; each size is a run of its
                   own, and what lacks quality counts as slower by a factor of ten for each tenth that it lacks
"""
import csv
import json
import math
import statistics
import subprocess

import peers

TABLE = "trimtuner_tf_ps_multifidelity.csv"
SIZES = (1000, 6000, 15000, 30000, 60000)
TRIALS = 60

# the SPEC it is made from, the accuracy asked for, how near to the best is near enough (a fraction)
CASES = {
    "time, accuracy >= 95 %": ("trimtuner-cnn-time", 0.95, 0.10),
    "time, accuracy >= 90 %": ("trimtuner-cnn-time", 0.90, 0.10),
    "time": ("trimtuner-cnn-time", None, 0.10),
    "accuracy": ("trimtuner-cnn-accuracy", None, 0.01),
}


def read(spec, path):
    """{configuration: {size: (time, accuracy, node-seconds)}}"""
    params = list(spec["dt"]) + [p for p in spec["hyperparameters"]]
    columns = [spec["replay"]["map"].get(p, p) for p in params]
    rows = {}
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["net"] == spec["replay"]["where"]["net"]:
                key = tuple(peers.number_or_text(row[c]) for c in columns)
                time = float(row["time_s"])
                rows.setdefault(key, {})[int(row["train_set_size"])] = (time, float(row["acc"]),
                                                                        time * float(row["n_workers"]))
    return rows


def specs_of(spec, rows, least):
    """The same study on all data, and with the fidelity; both with the same budget."""
    whole = json.loads(json.dumps(spec))
    average = statistics.mean(v[SIZES[-1]][2] for v in rows.values())
    whole["search"].update(max_configs=TRIALS, min_configs=TRIALS, repeats=0, max_node_hours=TRIALS * average / 3600)
    whole["replay"].update(nodes="n_workers", duration="time_s")
    if least:
        whole["quality"] = {"metric": "acc", "at_least": least}
    cheap = json.loads(json.dumps(whole))
    cheap["search"].update(max_configs=2 * TRIALS, min_configs=2 * TRIALS)  # the budget is the limit
    cheap["hyperparameters"]["samples"] = {"choices": list(SIZES), "fidelity": True}
    cheap["replay"]["map"]["samples"] = "train_set_size"
    del cheap["replay"]["where"]["train_set_size"]
    return whole, cheap


def own(program, spec, path, near, seeds, work):
    file = work / "fidelity.json"
    file.write_text(json.dumps(spec), encoding="utf-8")
    run = subprocess.run([program, "simulate", "--spec=%s" % file, "--table=%s" % path, "--seed=1", "--repeat=%d" % seeds,
                          "--format=json"], stdout=subprocess.PIPE, check=True)
    outcomes = []
    for study in json.loads(run.stdout)["studies"]:
        there = [h for h in study["history"] if h["gap_pct"] is not None and h["gap_pct"] <= 100 * near]
        outcomes.append((3600 * (there or study["history"][-1:])[0]["node_hours"], bool(there)))
    return outcomes


def peer(rows, objective, least, near, budget, seed):
    import optuna
    value = lambda row: -row[1] if objective == "acc" else math.log(row[0]) + 10 * math.log(10) * max(0, (least or 0) - row[1])
    good = lambda row: not least or row[1] >= least
    full = lambda key: rows[key][SIZES[-1]]
    best = min(full(k)[1 if objective == "acc" else 0] * (-1 if objective == "acc" else 1) for k in rows if good(full(k)))
    params = len(next(iter(rows)))
    values = [sorted({k[i] for k in rows}) for i in range(params)]
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=SIZES[-1] // SIZES[0])
    study = optuna.create_study(direction="minimize", sampler=peers.sampler("tpe", seed), pruner=pruner)
    spent = 0
    for _ in range(10 * TRIALS):
        if spent >= budget:
            break
        trial = study.ask()
        key = tuple(v[trial.suggest_int("p%d" % i, 0, len(v) - 1)] if not isinstance(v[0], str)
                    else trial.suggest_categorical("p%d" % i, v) for i, v in enumerate(values))
        state = optuna.trial.TrialState.PRUNED
        for size in SIZES if key in rows else ():
            row = rows[key][size]
            spent += row[2]
            trial.report(value(row), size // SIZES[0])
            if size == SIZES[-1]:
                state = None
                reached = row[1] >= -best * (1 - near) if objective == "acc" else row[0] <= best * (1 + near)
                if good(row) and reached:
                    return spent, True
            elif trial.should_prune():
                break
        study.tell(trial, value(full(key)) if state is None else None, state=state)
    return spent, False


def measure(program, specs, find_table, seeds, work):
    path = find_table(TABLE)
    results = []
    for name, (base, least, near) in CASES.items() if path else ():
        spec = json.loads((specs / (base + ".json")).read_text(encoding="utf-8"))
        rows = read(spec, path)
        whole, cheap = specs_of(spec, rows, least)
        outcomes = {"whole": own(program, whole, path, near, seeds, work),
                    "fidelity": own(program, cheap, path, near, seeds, work),
                    "tpe, hyperband": [peer(rows, spec["replay"]["objective"], least, near,
                                            3600 * whole["search"]["max_node_hours"], seed) for seed in range(1, seeds + 1)]}
        results.append({"name": name, "seeds": seeds,
                        "node_seconds": {m: statistics.mean(c for c, _ in o) for m, o in outcomes.items()},
                        "error": {m: statistics.stdev(c for c, _ in o) / len(o) ** 0.5 for m, o in outcomes.items()},
                        "median": {m: statistics.median(c for c, _ in o) for m, o in outcomes.items()},
                        "found": {m: sum(f for _, f in o) for m, o in outcomes.items()}})
    return results
