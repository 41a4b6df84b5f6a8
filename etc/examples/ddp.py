"""All-reduce training: every worker has the whole model, gloo averages the gradients."""

from datetime import timedelta

import train_common as common
from train_common import EXIT_STOPPED, UsageError, peers

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Group:
    """The workers of an all-reduce; one worker alone needs no communication."""

    def __init__(self, task):
        self.alone = task.world == 1
        self.task = task
        if not self.alone:
            with peers("forming the all-reduce group"):
                dist.init_process_group(
                    "gloo", store=dist.PrefixStore("ddp", task.store), rank=task.rank,
                    world_size=task.world, timeout=timedelta(seconds=task.args.timeout))

    def wrap(self, model):
        return model if self.alone else DistributedDataParallel(model)

    def stop_requested(self):
        """True in all workers at the same step as soon as one was asked to stop."""
        if self.alone:
            return common.stop_requested()
        flag = torch.tensor([int(common.stop_requested())])
        with peers("agreeing on the next step"):
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
        return bool(flag.item())

    def close(self):
        """Worker 0 writes results and checkpoint: nobody ends before it is done."""
        if not self.alone:
            with peers("waiting for worker 0 to finish"):
                dist.barrier()
            dist.destroy_process_group()


def train(task, data):
    """Train as one of task.world equal workers; returns the exit status."""
    args = task.args
    model = common.build_model()
    optimizer = common.make_optimizer(model.parameters(), args)
    checkpoint = common.Checkpoint(task, model)
    samples = 0
    found = checkpoint.load()
    if found:
        samples, flat, state = found
        torch.nn.utils.vector_to_parameters(flat, model.parameters())
        common.load_flat_state(optimizer, state)
    group = Group(task)
    net = group.wrap(model)
    progress = common.Progress(task, data, samples)
    total = args.epochs * len(data)
    stopped = False
    while samples < total:
        stopped = group.stop_requested()
        if stopped:
            break
        count = min(args.batch_size, total - samples)
        first, mine = common.share(samples, count, task.rank, task.world)
        optimizer.zero_grad()
        loss = common.summed_loss(net, *data.batch(first, mine))
        with peers(f"averaging gradients after {samples} samples"):
            # DDP averages over the workers; the sum over the whole batch is what we want.
            (loss * task.world / args.batch_size).backward()
        optimizer.step()
        samples += count
        progress.add(loss.item(), mine)
        progress.show(samples, model)
        if task.rank == 0 and checkpoint.due(samples):
            checkpoint.save(samples, common.flat_parameters(model), common.flat_state(optimizer))
    if task.rank == 0 and stopped:
        checkpoint.stop(samples, common.flat_parameters(model), common.flat_state(optimizer))
    elif task.rank == 0:
        progress.finish(samples, model)
    group.close()
    return EXIT_STOPPED if stopped else 0


def main():
    args = common.parse(common.options(__doc__))
    task = common.Task(args, servers=0)
    data = common.Digits()
    task.meet()
    if task.servers:
        raise UsageError("all-reduce training has no parameter servers; use --dt-ps=0")
    return train(task, data)


if __name__ == "__main__":
    common.run(main)
