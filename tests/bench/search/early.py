"""Stopping early, on measured courses of training: what a study of all configurations costs with each rule, as a part of
running all to their ends, and how far its best is from the best of all. Random order, one trial at a time; an epoch of every
configuration costs the same."""
import csv
import json
import statistics
import subprocess

TABLE = "pollux_validation_curves.csv"
GOALS = {"cifar10": "maximize", "imagenet": "maximize", "ncf": "maximize", "deepspeech2": "minimize",
         "yolov3": "minimize"}  # bert has two epochs
RULES = ("median", "asha", "hyperband")


def spec_of(model, rule, epochs):
    search = {"algorithm": "random", "seed": 1, "max_configs": 60, "min_configs": 60, "repeats": 0}
    if rule:
        search["early_stop"] = {"rule": rule, "max_step": epochs, "startup": 3}
    return {"version": 1,
            "hyperparameters": {"global_batch": {"type": "int", "low": 1, "high": 100000, "log": True}},
            "objective": {"metric": "metric", "goal": GOALS[model]}, "search": search,
            "replay": {"where": {"model": model}, "objective": "metric", "goal": GOALS[model], "step": "epoch"}}


def simulate(program, spec, table, seeds, work):
    path = work / "early.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    run = subprocess.run([program, "simulate", "--spec=%s" % path, "--table=%s" % table, "--repeat=%d" % seeds,
                          "--format=json"], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)["studies"]


def measure(program, find_table, seeds, work):
    path = find_table(TABLE)
    if not path:
        return []
    epochs = {}
    with open(path, encoding="utf-8") as f:
        for row in csv.DictReader(f):
            epochs[row["model"]] = max(epochs.get(row["model"], 0), int(row["epoch"]))
    results = []
    for model in GOALS:
        whole = simulate(program, spec_of(model, None, epochs[model]), path, 1, work)[0]["node_hours"]
        result = {"name": model, "seeds": seeds, "rules": {}}
        for rule in RULES:
            studies = simulate(program, spec_of(model, rule, epochs[model]), path, seeds, work)
            result["rules"][rule] = {"cost": statistics.mean(s["node_hours"] for s in studies) / whole,
                                     "gap_pct": statistics.mean(s["gap_pct"] for s in studies)}
        results.append(result)
    return results
