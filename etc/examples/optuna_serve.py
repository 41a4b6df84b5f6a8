#!/usr/bin/env python3
"""An Optuna study on a Slurm cluster: Optuna chooses the hyperparameters and stops what promises too
little, dt-tune runs the trials and finds the number of workers that is fastest for them.

    python3 optuna_serve.py 20 ddp.sh

runs 20 trials in all, two at a time. Both studies are on disk (optuna.journal and dt-tune-*), so after
any interruption the same command goes on: what ran meanwhile counts, and no trial is run twice.
"""
import contextlib
import fcntl
import json
import subprocess
import sys

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState

METRIC = "accuracy"
AT_ONCE = 2
SPACE = {"lr": FloatDistribution(0.005, 0.1, log=True),
         "optimizer": CategoricalDistribution(["sgd", "adam"])}
OPTIONS = ["--dt-ps=0", "--dt-workers=1-4",  # what dt-tune is to find
           "--dt-param=lr=0.005..0.1:log", "--dt-param=optimizer={sgd,adam}",  # what it is asked for
           f"--dt-objective=max:{METRIC}", f"--dt-parallel={AT_ONCE}"]


class Lock:
    """One that is gone with the process, however that ends; Optuna's own would keep out the next for ever."""

    def __init__(self, path):
        self.file = open(path, "a")

    def acquire(self):
        fcntl.flock(self.file, fcntl.LOCK_EX)
        return True

    def release(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)


total, script = int(sys.argv[1]), sys.argv[2:]
journal = optuna.storages.JournalFileStorage("optuna.journal", lock_obj=Lock("optuna.lock"))
storage = optuna.storages.JournalStorage(journal)
study = optuna.create_study(study_name="serve", storage=storage, load_if_exists=True,
                            direction="maximize", pruner=optuna.pruners.MedianPruner())

resume = [f"--dt-resume={study.user_attrs['dt-tune']}"] if "dt-tune" in study.user_attrs else []
command = ["dt-tune", "serve", *OPTIONS, f"--dt-max-configs={total}", *resume, *script]
serve = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
running = {}  # Optuna's trials by their number, which is also the id of the request


def send(**request):
    with contextlib.suppress(BrokenPipeError):  # it may have ended; then its answers say why
        serve.stdin.write(json.dumps(request) + "\n")
        serve.stdin.flush()


def run(trial):
    running[trial.number] = trial
    send(id=trial.number, hyperparameters=trial.params)


def run_more():
    while len(running) < AT_ONCE and len(study.trials) < total:
        run(study.ask(SPACE))
    if not running:
        send(end=True)


def metric(trial, answer):
    if answer["name"] == METRIC and answer["value"] is not None:
        trial.report(answer["value"], int(answer["step"]))
        if trial.should_prune():
            send(id=trial.number, prune=True)


def ended(trial, answer):
    del running[trial.number]
    if answer.get("status") == "ok":
        study.tell(trial, answer["value"])
    elif answer.get("status") == "pruned":
        study.tell(trial, state=TrialState.PRUNED)
    else:  # it failed, or was refused
        study.tell(trial, state=TrialState.FAIL)
    print(f"trial {trial.number}: {answer.get('status', answer.get('error'))},"
          f" {METRIC} {answer.get('value')}, {answer.get('config')}", flush=True)


for line in serve.stdout:
    answer = json.loads(line)
    event, trial = answer.get("event"), running.get(answer.get("id"))
    if event is None:  # the first line
        study.set_user_attr("dt-tune", answer["dir"])
        for frozen in study.get_trials(states=[TrialState.RUNNING]):  # those of an interrupted run
            if frozen.params.keys() == SPACE.keys():
                run(optuna.trial.Trial(study, frozen._trial_id))
            else:
                study.tell(frozen.number, state=TrialState.FAIL)
        run_more()
    elif event == "metric" and trial:
        metric(trial, answer)
    elif event in ("ended", "refused") and trial:
        ended(trial, answer)
        if event == "ended":
            run_more()
        elif not running:
            send(end=True)
    elif event == "refused":
        print("refused:", answer["error"], file=sys.stderr)
    elif event == "finished":
        print("finished:", answer["reason"])
        print("best:", json.dumps(answer["best"]))
sys.exit(serve.wait())
