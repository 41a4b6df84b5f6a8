"""Both kinds of parameters at once: node-seconds until the configuration that would be recommended is within 10 % of the
fastest (or cheapest) one that has the quality asked for. The same rows for all:

  joint            dt-tune, told the quality of each trial and a budget
  flat             dt-tune, one search over everything, a trial without the quality being a failed one
  one by one       dt-tune: first the hyperparameters on one DT configuration, for quality; then the DT configuration, for the
                   objective, with the best of them
  tpe              Optuna's TPE over everything, a trial without the quality being pruned
"""
import csv
import json
import random
import statistics
import subprocess

import peers

TRIALS = 60
WITHIN = 0.10

# the DT configuration's parameters; the column that tells the quality, and what is asked for
CASES = {
    "trimtuner-cnn-time": {"table": "trimtuner_tf_ps_multifidelity.csv", "dt": ("workers", "vm"), "quality": "acc",
                           "least": 0.95, "seconds": "time_s", "nodes": "n_workers"},
    "lynceus-cnn-cost": {"table": "lynceus_tf_ps_aws.csv", "dt": ("workers", "vm"), "quality": "acc", "least": 0.85,
                         "seconds": "time_s", "nodes": "n_workers"},
}


class Rows:
    """A table as the SPEC sees it: configuration -> (objective, quality is there, quality, node-seconds)."""

    def __init__(self, spec, path, case):
        replay = spec["replay"]
        self.params = list(spec.get("dt", {})) + list(spec.get("hyperparameters", {}))
        columns = [replay.get("map", {}).get(p, p) for p in self.params]
        self.rows = {}
        with open(path, encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if not all(peers.same(row[c], str(v)) for c, v in replay.get("where", {}).items()):
                    continue
                quality = float(row[case["quality"]])
                good = quality >= case["least"] and row.get("status", "ok") == "ok"
                self.rows[tuple(peers.number_or_text(row[c]) for c in columns)] = (
                    float(row[replay["objective"]]), good, quality, float(row[case["seconds"]]) * float(row[case["nodes"]]))
        self.best = min(value for value, good, _, _ in self.rows.values() if good)

    def reached(self, key):
        value, good, _, _ = self.rows[key]
        return good and value <= self.best * (1 + WITHIN)


def simulate(program, spec, table, seed, work):
    path = work / "joint.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    run = subprocess.run([program, "simulate", "--spec=%s" % path, "--table=%s" % table, "--seed=%d" % seed,
                          "--format=json"], stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)["studies"][0]["history"]


def key_of(rows, config):
    return tuple(config[p] for p in rows.params)


def cost_until(rows, keys):
    """Node-seconds until the best so far is near enough, and whether it ever is; of all trials where it is not."""
    spent, best = 0, None
    for key in keys:
        spent += rows.rows[key][3]
        if rows.rows[key][1] and (best is None or rows.rows[key][0] < rows.rows[best][0]):
            best = key
        if best is not None and rows.reached(best):
            return spent, True
    return spent, False


def own(program, rows, spec, table, seed, work):
    spec = json.loads(json.dumps(spec))
    spec["search"].update(max_configs=TRIALS, min_configs=TRIALS, repeats=0)
    history = simulate(program, spec, table, seed, work)
    return cost_until(rows, [key_of(rows, h["config"]) for h in history])


def with_status(path, case, work):
    """The table with a status that says whether the quality is there."""
    out = work / ("status-" + path.name)
    with open(path, encoding="utf-8") as source, open(out, "w", encoding="utf-8", newline="") as f:
        reader = csv.DictReader(source)
        names = reader.fieldnames + ["good"]
        writer = csv.DictWriter(f, names, lineterminator="\n")
        writer.writeheader()
        for row in reader:
            good = float(row[case["quality"]]) >= case["least"] and row.get("status", "ok") == "ok"
            writer.writerow({**row, "good": "ok" if good else "poor"})
    return out


def one_by_one(program, rows, spec, table, case, seed, work):
    """First the hyperparameters, on a DT configuration drawn by the seed, as a user has one; all of them where there are
    few. Then the DT configuration."""
    dt = [i for i, p in enumerate(rows.params) if p in case["dt"]]
    hyper = [i for i, p in enumerate(rows.params) if p not in case["dt"]]
    pick = lambda key, which: tuple(key[i] for i in which)
    start = random.Random(seed).choice(sorted({pick(k, dt) for k in rows.rows}))
    keys = [k for k in rows.rows if pick(k, dt) == start]
    random.Random(seed).shuffle(keys)
    first = max(keys, key=lambda k: rows.rows[k][2])
    narrow = json.loads(json.dumps(spec))
    for i in hyper:
        narrow["hyperparameters"][rows.params[i]] = {"choices": [first[i]]}
    narrow["search"].update(max_configs=TRIALS, min_configs=TRIALS, repeats=0)
    history = simulate(program, narrow, table, seed, work)
    return cost_until(rows, keys + [key_of(rows, h["config"]) for h in history])


def tpe(rows, seed):
    import optuna
    study = optuna.create_study(direction="minimize", sampler=peers.sampler("tpe", seed))
    values = [sorted({k[i] for k in rows.rows}) for i in range(len(rows.params))]
    ordered = [not any(isinstance(v, str) for v in column) for column in values]
    keys = []
    for _ in range(10 * TRIALS):
        trial = study.ask()
        key = tuple(v[trial.suggest_int(p, 0, len(v) - 1)] if o else trial.suggest_categorical(p, v)
                    for p, v, o in zip(rows.params, values, ordered))
        if key not in rows.rows:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        keys.append(key)
        if rows.rows[key][1]:
            study.tell(trial, rows.rows[key][0])
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        if len(keys) == TRIALS:
            break
    return cost_until(rows, keys)


def measure(program, specs, find_table, seeds, work):
    results = []
    for name, case in CASES.items():
        path = find_table(case["table"])
        if not path:
            continue
        spec = json.loads((specs / (name + ".json")).read_text(encoding="utf-8"))
        spec["replay"]["nodes"] = case["nodes"]
        rows = Rows(spec, path, case)
        flat, told = json.loads(json.dumps(spec)), json.loads(json.dumps(spec))
        flat["replay"].update(status="good", ok=["ok"])
        told["quality"] = {"metric": case["quality"], "at_least": case["least"]}
        average = statistics.mean(row[3] for row in rows.rows.values())
        told["search"]["max_node_hours"] = TRIALS * average / 3600
        labelled = with_status(path, case, work)
        methods = {
            "joint": lambda s: own(program, rows, told, path, s, work),
            "flat": lambda s: own(program, rows, flat, labelled, s, work),
            "one by one": lambda s: one_by_one(program, rows, flat, labelled, case, s, work),
            "tpe": lambda s: tpe(rows, s),
        }
        result = {"name": name, "seeds": seeds, "node_seconds": {}, "found": {}}
        for method, run in methods.items():
            outcomes = [run(seed) for seed in range(1, seeds + 1)]
            result["node_seconds"][method] = statistics.mean(cost for cost, _ in outcomes)
            result["found"][method] = sum(found for _, found in outcomes)
        results.append(result)
    return results
