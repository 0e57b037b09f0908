"""A training script with the habits of torch_npu's DDP tutorial: its rank from the environment, one NPU a rank."""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
import torch_npu
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets
from torchvision.transforms import ToTensor

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", default=512, type=int)
args = parser.parse_args()
gpu, world_size = int(os.environ["LOCAL_RANK"]), torch.npu.device_count()
torch.manual_seed(0)
training_data = datasets.FashionMNIST(root="./data", train=True, download=True, transform=ToTensor())
dist.init_process_group(backend="hccl", rank=gpu, world_size=world_size)
torch_npu.npu.set_device(gpu)
loc = f"npu:{gpu}"
model = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 64), nn.ReLU(), nn.Linear(64, 10)).to(loc)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss().to(loc)
model = nn.parallel.DistributedDataParallel(model, device_ids=[gpu])
sampler = DistributedSampler(training_data)
loader = DataLoader(training_data, args.batch_size // world_size, num_workers=1, sampler=sampler, drop_last=True)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for i, (images, target) in enumerate(loader):
        output = model(images.to(loc))
        loss = criterion(output, target.to(torch.int32).to(loc))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 100 == 0:
            print(f"loss: {loss.item():>7f} [{i * len(target):>5d}/{len(training_data):>5d}]")
