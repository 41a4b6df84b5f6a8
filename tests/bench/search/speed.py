"""CPU seconds a suggestion (other load does not count): dt-tune's optimizer, Optuna's TPE and the bare factorization of
a matrix of the same size."""
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

REPEATS = 10


def tpe_seconds(n):
    """The mean of REPEATS suggestions, each after one more finished trial, all 8 parameters."""
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = {"p%d" % k: optuna.distributions.IntDistribution(0, 9) for k in range(8)}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1))
    generator = random.Random(1)
    for _ in range(n):
        params = {name: generator.randint(0, 9) for name in distributions}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions,
                                                  value=sum((v - 3) ** 2 for v in params.values())))
    times = []
    for _ in range(REPEATS + 1):
        start = time.process_time()
        trial = study.ask(distributions)
        times.append(time.process_time() - start)
        study.tell(trial, sum((v - 3) ** 2 for v in trial.params.values()))
    return statistics.mean(times[1:])


def factorization_seconds(n):
    import numpy
    from scipy.linalg import lapack
    x = numpy.random.default_rng(1).random((n, 8))
    distance = ((x[:, None, :] - x[None, :, :]) ** 2).sum(axis=2)
    matrix = numpy.asfortranarray(numpy.exp(-distance) + 1e-3 * numpy.eye(n))
    times = []
    for _ in range(REPEATS):
        copy = matrix.copy(order="F")
        start = time.process_time()
        _, info = lapack.dpotrf(copy, lower=1, clean=0, overwrite_a=1)
        times.append(time.process_time() - start)
        assert info == 0
    return statistics.median(times)


def lapack_name():
    """The library that dpotrf came from."""
    with open("/proc/self/maps", encoding="utf-8") as f:
        paths = {line.split()[-1] for line in f if "blas" in line or "lapack" in line}
    return ", ".join(sorted({pathlib.Path(p).resolve().parent.name + "/" + pathlib.Path(p).name
                             for p in paths if p.startswith("/") and "dist-packages" not in p}))


def build_program(top, build, source, path):
    rule = top / "tests/bench/search/program.mk"
    subprocess.run(["make", "-s", "-o", "Makefile", "-C", str(build), "-f", str(rule), "program", "SOURCE=%s" % source,
                    "PROGRAM=%s" % path], check=True, stdout=2)


def measure(top, build, sizes):
    results = []
    with tempfile.TemporaryDirectory(prefix="dt-search-bench.") as work:
        program = pathlib.Path(work) / "suggest_time"
        build_program(top, build, "suggest_time.c", program)
        for n in sizes:
            run = subprocess.run([program, str(n)], stdout=subprocess.PIPE, check=True)
            results.append({**json.loads(run.stdout), "tpe_s": tpe_seconds(n), "dpotrf_s": factorization_seconds(n)})
    return {"candidates": results[0]["candidates"], "lapack": lapack_name(), "sizes": results}
