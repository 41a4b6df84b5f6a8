"""Continuous and mixed functions with a known least value, asked through dt-tune suggest and through the peers."""
import json
import math
import statistics
import subprocess

import peers

TRIALS = 50


def unit(n, low, high):
    return {"x%d" % i: {"type": "float", "low": low, "high": high} for i in range(n)}


def branin(c):
    x, y = c["x0"], c["x1"]
    return ((y - 5.1 / (4 * math.pi ** 2) * x * x + 5 / math.pi * x - 6) ** 2
            + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


HARTMANN_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8),
              (17, 8, 0.05, 10, 0.1, 14))
HARTMANN_P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
              (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))


def hartmann6(c):
    x = [c["x%d" % i] for i in range(6)]
    total = 0
    for alpha, a, p in zip((1, 1.2, 3, 3.2), HARTMANN_A, HARTMANN_P):
        total += alpha * math.exp(-sum(a[j] * (x[j] - p[j] / 10000) ** 2 for j in range(6)))
    return -total


def ackley(x):
    n = len(x)
    return (20 + math.e - 20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / n))
            - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n))


def ackley_mixed(c):
    """Two floats, two integers, one word that shifts the rest."""
    shift = {"red": 1.5, "green": 0, "blue": -2.5}[c["word"]]
    return ackley([c["x0"] + shift, c["x1"] - 1, c["k0"] - 3, c["k1"] + 2, shift])


def levy20(c):
    """Its best place is moved away from the middle, where CMA-ES begins."""
    w = [1 + (c["x%d" % i] - (7 * i % 11 - 5)) / 4 for i in range(20)]
    total = math.sin(math.pi * w[0]) ** 2 + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return total + sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])


FUNCTIONS = {
    "Branin": (branin, 0.397887357729739, {
        "x0": {"type": "float", "low": -5, "high": 10}, "x1": {"type": "float", "low": 0, "high": 15}}),
    "Hartmann-6": (hartmann6, -3.32236801141551, unit(6, 0, 1)),
    "Ackley, 2 floats, 2 integers, 1 word": (ackley_mixed, 0, {
        **unit(2, -5, 5), "k0": {"type": "int", "low": -5, "high": 5}, "k1": {"type": "int", "low": -5, "high": 5},
        "word": {"choices": ["red", "green", "blue"]}}),
    "Levy, 20 floats": (levy20, 0, unit(20, -10, 10)),
}


def own(program, function, domains, algorithm, seed, work):
    """The least value after each trial, every suggestion by a process of its own."""
    spec, observations, best = work / "function.json", work / "function.jsonl", []
    spec.write_text(json.dumps({"version": 1, "hyperparameters": domains, "search": {"algorithm": algorithm}}))
    observations.write_text("")
    for _ in range(TRIALS):
        run = subprocess.run([program, "suggest", "--spec=%s" % spec, "--observations=%s" % observations, "-n", "1",
                              "--seed=%d" % seed], stdout=subprocess.PIPE, check=True)
        config = json.loads(run.stdout)["config"]
        value = function(config)
        with open(observations, "a", encoding="utf-8") as f:
            f.write(json.dumps({"config": config, "value": value, "status": "ok", "duration_s": 1.0}) + "\n")
        best.append(min(value, best[-1] if best else math.inf))
    return best


def peer(function, domains, name, seed):
    import optuna
    study, best = optuna.create_study(sampler=peers.sampler(name, seed)), []
    for _ in range(TRIALS):
        trial, config = study.ask(), {}
        for key, d in domains.items():
            if "choices" in d:
                config[key] = trial.suggest_categorical(key, d["choices"])
            else:
                kind = trial.suggest_int if d["type"] == "int" else trial.suggest_float
                config[key] = kind(key, d["low"], d["high"])
        value = function(config)
        study.tell(trial, value)
        best.append(min(value, best[-1] if best else math.inf))
    return best


def measure(program, seeds, work):
    results = []
    for name, (function, least, domains) in FUNCTIONS.items():
        regret = {}
        for algorithm in ("bayes", "sobol", "random"):
            regret[algorithm] = [own(program, function, domains, algorithm, s, work) for s in range(1, seeds + 1)]
        for sampler in ("tpe", "cmaes"):
            regret[sampler] = [peer(function, domains, sampler, s) for s in range(1, seeds + 1)]
        medians = {m: {str(n): statistics.median(r[n - 1] for r in runs) - least for n in (10, 25, TRIALS)}
                   for m, runs in regret.items()}
        results.append({"name": name, "seeds": seeds, "median_regret": medians})
    return results
