"""A training whose servers are a real bottleneck: each serves one worker after the other.

A step of a worker is some computing and then an exchange with all servers at once, each of which
keeps a part of the parameters and is busy for its part of the time: a fifth of it with its CPU, the
rest as with a disk, so that what else runs on this machine matters little. The first server counts,
over all workers. Asked by SIGUSR1, the workers save how far they are, and exit with 143.
"""

import json
import os
import select
import signal
import socket
import time

SERVICE = float(os.environ.get("SERVICE", "0.04"))  # seconds of one exchange with one server
COMPUTE = float(os.environ.get("COMPUTE", "0.005"))  # seconds of one step
STEPS = int(os.environ.get("STEPS", "1000"))
ps = [h.rsplit(":", 1) for h in os.environ["DT_PS_HOSTS"].split(",")]
rank = int(os.environ["DT_ROLE_RANK"])
saved = os.environ["DT_CHECKPOINT_DIR"] + "/step"
run = os.environ["DT_RESTARTS"]
asked = []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))


def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def serve():
    listener = socket.create_server(("", int(ps[rank][1])), backlog=64)
    peers, done = [listener], 0
    while True:
        for s in select.select(peers, [], [])[0]:
            if s is listener:
                peers.append(listener.accept()[0])
            elif s.recv(1):
                work(0.2 * SERVICE / len(ps))
                time.sleep(0.8 * SERVICE / len(ps))
                done += 1
                s.send(done.to_bytes(8, "big"))
            else:
                peers.remove(s)


def connect(host, port):
    while True:
        try:
            return socket.create_connection((host, int(port)))
        except OSError:
            time.sleep(0.1)


def save(step):
    """Who exits first ends all: the others wait for worker 0."""
    path = f"{saved}-{int(run) + 1}"
    if rank == 0:
        with open(path + ".part", "w", encoding="ascii") as f:
            f.write(str(step))
        os.rename(path + ".part", path)
    while not os.path.exists(path):
        time.sleep(0.1)
    raise SystemExit(143)


def train():
    servers = [connect(*h) for h in ps]
    path, before = f"{saved}-{run}", 0
    if os.path.exists(path):
        with open(path, encoding="ascii") as f:
            before = int(f.read())
    step, told = before, 0.0
    while step < STEPS:
        if asked:
            save(step)
        work(COMPUTE)
        for s in servers:
            s.send(b"x")
        answers = [s.recv(8, socket.MSG_WAITALL) for s in servers]
        step = before + int.from_bytes(answers[0], "big")
        if rank == 0 and time.monotonic() - told > 0.5:
            told = time.monotonic()
            with open(os.environ["DT_METRICS_FILE"], "a", encoding="ascii") as f:
                f.write(json.dumps({"step": step, "time": time.time()}) + "\n")


if os.environ["DT_ROLE"] == "ps":
    serve()
else:
    train()
