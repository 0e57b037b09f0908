"""Horovod: nothing in it says cuda where it talks to other processes."""
import argparse

import horovod.torch as hvd  #: M901
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batches-per-allreduce", type=int, default=1)
parser.add_argument("--pretrained", action="store_true", help="use the model trained on cuda")


def main():
    args = parser.parse_args()
    hvd.init()  #: M901
    local_rank = hvd.local_rank()  #: M901
    torch.cuda.set_device(local_rank)  #: M201
    model = nn.Linear(8, 4)
    model.cuda()  #: M102
    criterion = nn.CrossEntropyLoss().cuda(local_rank)  #: M102
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)  #: M901
    compression = hvd.Compression.fp16  #: M901
    optimizer = hvd.DistributedOptimizer(  #: M901
        optimizer, named_parameters=model.named_parameters(), compression=compression
    )
    cudnn.benchmark = True  #: M801
    data = torch.utils.data.TensorDataset(torch.randn(16, 8), torch.randint(0, 4, (16,)))
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())  #: M901
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True, sampler=sampler)
    for images, target in loader:
        images = images.cuda(local_rank, non_blocking=True)  #: M102
        target = target.cuda(local_rank, non_blocking=True)  #: M102
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if hvd.rank() == 0:  #: M901
            print(args.batches_per_allreduce, loss.item())


if __name__ == "__main__":
    main()
