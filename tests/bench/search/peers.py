"""The peers: Optuna's samplers on the rows of a measured table, counted as dt-tune simulate counts its own trials."""
import csv
import json
import math
import warnings

MARKS = (10, 20, 40, 60)


def same(a, b):
    """Equal as numbers where both are, else letter by letter."""
    try:
        return float(a) == float(b)
    except ValueError:
        return a == b


class Table:
    """What a SPEC's replay section sees of a table. The specs here take all of a parameter's values, so domains and
    constraints need no reading; that dt-tune has the same space and the same best is checked by the caller."""

    def __init__(self, spec_path, table_path):
        with open(spec_path, encoding="utf-8") as f:
            spec = json.load(f)
        replay = spec["replay"]
        self.params = list(spec.get("dt", {})) + list(spec.get("hyperparameters", {}))
        self.maximize = replay["goal"] == "maximize"
        columns = [replay.get("map", {}).get(p, p) for p in self.params]
        self.rows = {}
        with open(table_path, encoding="utf-8") as f:
            for row in csv.DictReader(f):
                if all(same(row[c], str(v)) for c, v in replay.get("where", {}).items()):
                    self._take(row, columns, replay)
        self.values, self.ordered = [], []
        for i in range(len(self.params)):
            seen = {key[i] for key in self.rows}
            ordered = not any(isinstance(v, str) for v in seen)
            self.values.append(sorted(seen))
            self.ordered.append(ordered)
        good = [v for v in map(self.value, self.rows) if v is not None]
        self.best = max(good) if self.maximize else min(good)
        self.good = len(good)

    def _take(self, row, columns, replay):
        key = tuple(number_or_text(row[c]) for c in columns)
        ok = "status" not in replay or row[replay["status"]] in replay.get("ok", ["ok"])
        try:
            value = float(row[replay["objective"]])
        except ValueError:
            value = math.nan
        self.rows.setdefault(key, []).append(value if ok and math.isfinite(value) else None)

    def value(self, key):
        """The mean of a configuration's good rows; None if there is none."""
        good = [v for v in self.rows[key] if v is not None]
        return sum(good) / len(good) if good else None

    def gap(self, value):
        behind = self.best - value if self.maximize else value - self.best
        return behind / max(abs(self.best), 1e-300)

    def random_trials_to(self, gap):
        """What random search without replacement needs on average: (N + 1) / (k + 1)."""
        near = sum(v is not None and self.gap(v) <= gap for v in map(self.value, self.rows))
        return (len(self.rows) + 1) / (near + 1)


def number_or_text(text):
    try:
        return float(text)
    except ValueError:
        return text


def sampler(name, seed):
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")
    if name == "cmaes":
        return optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
    return optuna.samplers.TPESampler(seed=seed)


def suggest(trial, table, dependent):
    """A parameter of numbers is the index of one of its values in order, a parameter of words is categorical.
    `dependent`: words come first, and a number's index is among the values that are measured with what was chosen
    before it (Optuna takes ranges that change, but no lists of words that do)."""
    order = sorted(range(len(table.params)), key=lambda i: table.ordered[i])
    key, left = [None] * len(order), list(table.rows)
    for i in order:
        values = table.values[i]
        if dependent and table.ordered[i] and left:
            values = sorted({k[i] for k in left})
        if len(values) == 1:
            key[i] = values[0]
        elif table.ordered[i]:
            key[i] = values[trial.suggest_int(table.params[i], 0, len(values) - 1)]
        else:
            key[i] = trial.suggest_categorical(table.params[i], values)
        left = [k for k in left if k[i] == key[i]] if dependent else left
    return tuple(key)


def study(table, name, seed, trials):
    """One study. A combination that the table has not is pruned and is no trial (`unmeasured`), as a user who knows
    that it cannot run pays nothing for it; a failed or timed out row is a trial and is pruned. `to_5pct_all` counts the
    unmeasured ones too."""
    import optuna
    s = optuna.create_study(direction="maximize" if table.maximize else "minimize", sampler=sampler(name, seed))
    r = {"to_5pct": None, "to_1pct": None, "to_5pct_all": None, "duplicates": 0, "failed": 0, "unmeasured": 0,
         "gap": {}}
    turns, n, best, gap = {}, 0, None, math.inf
    most = min(trials, len(table.rows))
    # a sampler may ask for what cannot run, or for the same, without end
    for asked in range(1, 10 * most + 1):
        trial = s.ask()
        key = suggest(trial, table, name == "tpe-dependent")
        if key not in table.rows:
            s.tell(trial, state=optuna.trial.TrialState.PRUNED)
            r["unmeasured"] += 1
            continue
        n += 1
        turn = turns.get(key, 0)
        turns[key] = turn + 1
        r["duplicates"] += turn > 0
        value = table.rows[key][turn % len(table.rows[key])]
        if value is None:
            s.tell(trial, state=optuna.trial.TrialState.PRUNED)
            r["failed"] += 1
        else:
            s.tell(trial, value)
            if best is None or (value > best if table.maximize else value < best):
                best, gap = value, table.gap(table.value(key))
        for key_of_gap, limit in (("to_5pct", 0.05), ("to_1pct", 0.01)):
            if r[key_of_gap] is None and gap <= limit:
                r[key_of_gap] = n
                if limit == 0.05:
                    r["to_5pct_all"] = asked
        for mark in MARKS:
            if n <= mark:
                r["gap"][mark] = gap
        if n == most:
            break
    for mark in MARKS:
        r["gap"].setdefault(mark, gap)
    return r
