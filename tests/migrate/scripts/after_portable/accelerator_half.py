"""Half portable already: torch.accelerator picks the device, and `device.type == "cuda"` decides everything else."""
import argparse

import torch
import torch.distributed as dist
import torch.nn as nn

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
COLLECTIVE_BACKEND = torch.distributed.get_default_backend_for_device(ACCELERATOR)


def accelerator_device(index=None):
    """The accelerator with this index (the current one by default), or the CPU where there is none."""
    if isinstance(index, (str, torch.device)):
        return torch.device(index)
    if index is None or ACCELERATOR == "cpu":
        return torch.device(ACCELERATOR)
    return torch.device(ACCELERATOR, index)

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default=COLLECTIVE_BACKEND, type=str)  #: M301
parser.add_argument("--distributed", action="store_true")
parser.add_argument("--gpu", default=0, type=int)
parser.add_argument("--steps", default=2, type=int)


def main():
    args = parser.parse_args()
    use_accel = torch.accelerator.is_available()
    device = torch.accelerator.current_accelerator() if use_accel else torch.device("cpu")
    if device.type in ("cuda", "npu"):  #: M106
        ngpus_per_node = torch.accelerator.device_count()
        if ngpus_per_node == 1 and args.dist_backend in ("nccl", "hccl"):  #: M303
            print("one card: nccl has nothing to do")
    else:
        ngpus_per_node = 1
    print(f"Using device: {device} ({ngpus_per_node}), not cuda by name")
    model = nn.Linear(8, 4)
    if not use_accel:
        print("using CPU, this will be slow")
    elif args.distributed:
        if device.type in ("cuda", "npu"):  #: M106
            if args.gpu is not None:
                torch.accelerator.set_device_index(args.gpu)  #: M201
                model.to(accelerator_device(device))  #: M102
                model = nn.parallel.DistributedDataParallel(model, device_ids=None if ACCELERATOR == "cpu" else [args.gpu])
    elif device.type in ("cuda", "npu"):  #: M106
        model = model.to(accelerator_device(device))  #: M102
    elif device.type in ("mps", "xpu"):
        model = model.to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    moved = 0
    for step in range(args.steps):
        x, y = torch.randn(4, 8), torch.randint(0, 4, (4,))
        if device.type != "cpu":
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            moved += 1
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f} on {next(model.parameters()).device.type}")
    if dist.is_initialized() and dist.get_backend() in ("nccl", "hccl"):  #: M303
        dist.destroy_process_group()
    return moved


if __name__ == "__main__":
    main()
