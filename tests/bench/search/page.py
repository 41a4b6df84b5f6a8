"""The results as one page of text and a plot."""
import math
import statistics
import sys

ORDER = ("bayes", "sobol", "random", "tpe", "tpe-dependent", "cmaes")
NAMES = {"tpe": "Optuna TPE", "tpe-dependent": "Optuna TPE, dependent ranges", "cmaes": "Optuna CMA-ES"}
TPE = ("tpe", "tpe-dependent")


def counts(results, numbers):
    """Numbers of trials; what was never found counts as one trial more than there were."""
    return [results["trials"] + 1 if n is None else n for n in numbers]


def mean_to(results, table, how, key="to_5pct"):
    return statistics.mean(counts(results, table["methods"][how][key]))


def reached(table, how, mark):
    """Mean of best/optimum, or of optimum/best where the objective is minimized; 0 while nothing was found."""
    ratios = []
    for gap in table["methods"][how]["gap"][str(mark)]:
        if gap is None:
            ratios.append(0)
        else:
            ratios.append(max(0, 1 - gap) if table["maximize"] else 1 / (1 + gap))
    return statistics.mean(ratios)


def gaps(table, how, mark):
    return [math.inf if g is None else g for g in table["methods"][how]["gap"][str(mark)]]


def families(results):
    seen = {}
    for table in results["tables"]:
        seen.setdefault(table["family"], []).append(table)
    return seen


def present(results):
    return [how for how in ORDER if results["tables"] and how in results["tables"][0]["methods"]]


def table_of(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def ratio(a, b):
    return "%.2f" % (a / b) if b else "-"


def trials_section(results):
    methods = present(results)
    head = ["table", "configurations (good)", "seeds"]
    head += [NAMES.get(m, m) for m in methods] + ["random, expected"]
    tpe = [m for m in TPE if m in methods]
    head += ["bayes : TPE", "bayes : better TPE", "TPE, all asked"] if tpe else []
    rows = []

    def row(name, size, tables):
        mean = {m: statistics.mean(mean_to(results, t, m) for t in tables) for m in methods}
        cells = [name, size, str(tables[0]["seeds"])] + ["%.1f" % mean[m] for m in methods]
        cells += ["%.1f" % statistics.mean(t["random_mean_to_5pct"] for t in tables)]
        if tpe:
            asked = [mean_to(results, t, tpe[0], "to_5pct_all") for t in tables]
            cells += [ratio(mean["bayes"], mean[tpe[0]]), ratio(mean["bayes"], min(mean[m] for m in tpe)),
                      "%.1f" % statistics.mean(asked)]
        rows.append(cells)

    for family, tables in families(results).items():
        for t in tables:
            row(t["name"], "%d (%d)" % (t["configurations"], t["good"]), [t])
        if len(tables) > 1:
            row("**%s, mean**" % family, "", tables)
    title = "## Trials to within 5 %% of the best (mean; never in %d: %d)" % (results["trials"], results["trials"] + 1)
    return [title, ""] + table_of(head, rows)


def reached_section(results):
    methods = present(results)
    rows = []
    for family, tables in families(results).items():
        for m in methods:
            cells = [family, NAMES.get(m, m)]
            cells += ["%.3f" % statistics.mean(reached(t, m, n) for t in tables) for n in (10, 20, 40, 60)]
            for key in ("to_5pct", "to_1pct"):
                found = [n for t in tables for n in t["methods"][m][key]]
                cells.append("%d/%d" % (sum(n is not None for n in found), len(found)))
            for key in ("duplicates", "repeats", "failed", "unmeasured"):
                numbers = [n for t in tables for n in t["methods"][m].get(key, [0])]
                cells.append("%.1f" % statistics.mean(numbers))
            rows.append(cells)
    head = ["tables", "method", "@10", "@20", "@40", "@60", "within 5 %", "within 1 %", "duplicates",
            "measured again", "failed", "asked, unmeasured"]
    return ["## Best so far : optimum after n trials (mean), and what became of %d trials" % results["trials"],
            ""] + table_of(head, rows)


def median_section(results):
    methods = present(results)
    rows = []
    for t in results["tables"]:
        for m in methods:
            method = t["methods"][m]
            cells = [t["name"], NAMES.get(m, m)]
            cells += ["%.2f" % (100 * statistics.median(gaps(t, m, n))) for n in (10, 20, 40)]
            cells += ["%d/%d" % (sum(g <= 1e-12 for g in gaps(t, m, 40)), t["seeds"])]
            cells += ["%.0f" % statistics.median(counts(results, method["to_1pct"]))]
            rows.append(cells)
    head = ["table", "method", "gap @10, %", "@20, %", "@40, %", "optimum found in 40", "trials to 1 %"]
    return ["## Every table, medians", ""] + table_of(head, rows)


def variants_section(results):
    rows = []
    for family, tables in families(results).items():
        base = statistics.mean(mean_to(results, t, "bayes") for t in tables)
        four, eight = (statistics.mean(mean_to(results, t, "bayes, %d at a time" % k) for t in tables) for k in (4, 8))
        stop = [t["methods"]["bayes, default stop"] for t in tables]
        n = [k for m in stop for k in m["trials"]]
        ends = [g for t in tables for g in gaps(t, "bayes, default stop", 60)]
        failing = statistics.mean(mean_to(results, t, "bayes, 10 % fail") for t in tables)
        noisy = ["%.3f" % statistics.mean(reached(t, "bayes, noise 5 %%, %d" % k, 60) for t in tables) for k in (30, 40)]
        rows.append([family, "%.1f" % statistics.mean(n), "%.1f %%" % (100 * sum(g <= 0.05 for g in ends) / len(ends)),
                     "%.3f" % statistics.mean(reached(t, "bayes, default stop", 60) for t in tables),
                     *("%.1f = %s x" % (x, ratio(x, base)) for x in (four, eight, failing))] + noisy)
    head = ["tables", "default stop: trials", "within 5 %", "best : optimum", "4 at a time: trials to 5 %",
            "8 at a time", "10 % of runs fail", "noise 5 %: true value of the recommended : optimum, 30 trials", "40"]
    return ["## Bayes with its default stopping rule, in parallel, with failures, with noise", ""] + table_of(head, rows)


def search_page(results):
    lines = ["# The search and its peers, %s" % results["date"], "",
             "%s, %d cores, one used; Optuna %s; trials a study: %d." % (
                 results["cpu"], results["cores"], results["optuna"], results["trials"]), ""]
    if not results["tables"]:
        lines += ["No table is there."]
    else:
        for section in (trials_section, reached_section, variants_section, median_section):
            lines += section(results) + [""]
        again = sum(t["same_seed_same_run"] for t in results["tables"])
        lines += ["Same seeds, the same output byte for byte: %d of %d tables." % (again, len(results["tables"]))]
    lines += ["", "Skipped:"] + ["- " + s for s in results["skipped"]] if results["skipped"] else []
    return "\n".join(lines) + "\n"


def functions_page(results):
    head = ["function", "seeds", "trials"] + [NAMES.get(m, m) for m in ORDER if m != "tpe-dependent"]
    rows = []
    for r in results["functions"]:
        for n in r["median_regret"]["bayes"]:
            values = [r["median_regret"][m][n] for m in ORDER if m in r["median_regret"]]
            rows.append([r["name"], str(r["seeds"]), n] + ["%.3g" % v for v in values])
    lines = ["# Continuous and mixed functions, %s: median of least value so far - least value" % results["date"], "",
             "Optuna %s; every suggestion of dt-tune is a process of its own." % results["optuna"], ""]
    return "\n".join(lines + table_of(head, rows)) + "\n"


def early_page(results):
    rules = sorted({rule for r in results["models"] for rule in r["rules"]})
    head = ["model", "seeds"] + [c for rule in rules for c in (rule + ": cost", "best is behind, %")]
    rows = [[r["name"], str(r["seeds"])] + [c for rule in rules for c in ("%.2f" % r["rules"][rule]["cost"], "%.2f" %
                                                                          r["rules"][rule]["gap_pct"])]
            for r in results["models"]]
    lines = ["# Stopping early: node-seconds of a study : of running all to their ends, %s" % results["date"], ""]
    return "\n".join(lines + table_of(head, rows)) + "\n"


def joint_page(results):
    methods = ("joint", "flat", "one by one", "tpe")
    head = ["table", "seeds"] + [NAMES.get(m, m) for m in methods] + ["joint : best of the others", "found"]
    rows = []
    for r in results["tables"]:
        spent = r["node_seconds"]
        rows.append([r["name"], str(r["seeds"])] + ["%.0f" % spent[m] for m in methods] +
                    [ratio(spent["joint"], min(spent[m] for m in methods[1:])),
                     ", ".join("%d" % r["found"][m] for m in methods)])
    lines = ["# Node-seconds until within 10 %% of the best that has the quality asked for, %s" % results["date"], "",
             "Optuna %s; mean over seeds; what never came there counts with all its trials." % results["optuna"], ""]
    return "\n".join(lines + table_of(head, rows)) + "\n"


def fidelity_page(results):
    methods = ("whole", "fidelity", "tpe, hyperband")
    head = ["objective", "seeds"] + list(methods) + ["fidelity : whole", "of the medians", "found"]
    rows = []
    for r in results["tables"]:
        spent, middle = r["node_seconds"], r["median"]
        rows.append([r["name"], str(r["seeds"])] + ["%.0f +- %.0f" % (spent[m], r["error"][m]) for m in methods] +
                    [ratio(spent["fidelity"], spent["whole"]), ratio(middle["fidelity"], middle["whole"]),
                     ", ".join("%d" % r["found"][m] for m in methods)])
    lines = ["# Node-seconds until a configuration near the best was run on all data, %s" % results["date"], "",
             "Optuna %s; mean over seeds and its standard error; what never came there counts with all its trials." %
             results["optuna"], ""]
    return "\n".join(lines + table_of(head, rows)) + "\n"


def speed_page(results):
    def seconds(x):
        return "%.4f" % x

    head = ["n", "next after another, s", "first of all, s", "Optuna TPE, s", ": TPE", "dpotrf, s", ": dpotrf",
            "peak memory, MiB"]
    rows = []
    for r in results["sizes"]:
        rows.append([str(r["n"]), seconds(r["warm_s"]), seconds(r["cold_s"]), seconds(r["tpe_s"]),
                     ratio(r["warm_s"], r["tpe_s"]), "%.5f" % r["dpotrf_s"], "%.0f" % (r["warm_s"] / r["dpotrf_s"]),
                     "%.0f" % r["peak_mib"]])
    lines = ["# CPU seconds a suggestion, %s" % results["date"], "",
             "%s, %d cores, one thread; Optuna %s; 8 parameters, %d candidates; LAPACK: %s." % (
                 results["cpu"], results["cores"], results["optuna"], results["candidates"], results["lapack"]), ""]
    return "\n".join(lines + table_of(head, rows)) + "\n"


def plot(results, path):
    """Left: the mean of best/optimum at the marks. Right: the share of studies within 5 %, trial by trial."""
    try:
        import matplotlib
    except ImportError:
        print("search-bench: no plot: python3-matplotlib is not installed", file=sys.stderr)
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dt-tune"
    from matplotlib import pyplot
    groups = families(results)
    if not groups:
        return
    figure, axes = pyplot.subplots(len(groups), 2, figsize=(10, 2.6 * len(groups)), squeeze=False)
    for (family, tables), (left, right) in zip(groups.items(), axes):
        for i, m in enumerate(present(results)):
            marks = (10, 20, 40, 60)
            left.plot(marks, [statistics.mean(reached(t, m, n) for t in tables) for n in marks], "o-", color="C%d" % i,
                      label=NAMES.get(m, m), markersize=3)
            found = [n for t in tables for n in t["methods"][m]["to_5pct"]]
            steps = range(results["trials"] + 1)
            right.step(steps, [sum(n is not None and n <= k for n in found) / len(found) for k in steps],
                       where="post", color="C%d" % i)
        left.set_ylabel(family)
        left.set_ylim(top=1.005)
        right.set_ylim(-0.02, 1.02)
    axes[0][0].legend(fontsize=7, loc="lower right")
    axes[0][0].set_title("best so far : optimum (mean)", fontsize=9)
    axes[0][1].set_title("share of studies within 5 %", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("trials")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
