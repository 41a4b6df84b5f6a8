"""A small network on scikit-learn's digits, in the shape of the public tutorials of DistributedDataParallel."""

import argparse
import os

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=8)
args = parser.parse_args()

rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
dist.init_process_group("gloo", rank=rank, world_size=world)
torch.manual_seed(0)
torch.set_num_threads(1)
x, y = (torch.tensor(a) for a in load_digits(return_X_y=True))
x = x.float() / 16
train, test = TensorDataset(x[:1400], y[:1400]), (x[1400:], y[1400:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=64 // world, sampler=sampler)
model = DDP(torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 10)))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    if rank == 0:
        accuracy = (model.module(test[0]).argmax(1) == test[1]).float().mean()
        print(f"epoch {epoch} accuracy {accuracy:.4f}", flush=True)
dist.destroy_process_group()
