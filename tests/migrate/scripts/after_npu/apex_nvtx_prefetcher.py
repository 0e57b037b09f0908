"""Mixed precision with nvtx marks, a prefetching stream, channels_last and a map_location function."""
import argparse
import os

import torch
import torch_npu
import torch.distributed as dist
import torch.nn as nn

try:
    pass  #: M510
except ImportError:
    DDP = nn.parallel.DistributedDataParallel


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prof", default=-1, type=int, help="Only run 10 iterations for profiling with nvtx.")
    parser.add_argument("--local_rank", "--local-rank", default=os.getenv("LOCAL_RANK", 0), type=int)  #: M308
    parser.add_argument("--sync_bn", action="store_true", help="enabling apex sync BN.")
    parser.add_argument("--channels-last", default=False, action="store_true")
    parser.add_argument("--resume", default="", type=str)
    parser.add_argument("--save", default="", type=str)
    return parser.parse_args()


class data_prefetcher:
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.npu.Stream()  #: M201
        self.mean = torch.tensor([0.5]).npu().view(1, 1, 1, 1)  #: M102
        # With Amp, it isn't necessary to manually convert data to half.
        # if args.fp16:
        #     self.mean = self.mean.cuda().half()
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = None
            self.next_target = None
            return
        with torch.npu.stream(self.stream):  #: M201
            self.next_input = self.next_input.npu(non_blocking=True)  #: M102
            self.next_target = self.next_target.npu(non_blocking=True)  #: M102
            # self.next_input = torch.empty_like(self.input, device='cuda')
            self.next_input = self.next_input.float().sub_(self.mean)

    def next(self):
        torch.npu.current_stream().wait_stream(self.stream)  #: M201
        input = self.next_input
        target = self.next_target
        if input is not None:
            input.record_stream(torch.npu.current_stream())  #: M201
        if target is not None:
            target.record_stream(torch.npu.current_stream())  #: M201
        self.preload()
        return input, target


def main():
    args = parse()
    print("\nCUDNN VERSION: {}\n".format(torch.backends.cudnn.version()))  #: M803
    torch.backends.cudnn.benchmark = True  #: M801
    args.distributed = int(os.environ.get("WORLD_SIZE", "1")) > 1
    args.gpu = 0
    if args.distributed:
        args.gpu = args.local_rank
        torch.npu.set_device(args.gpu)  #: M201
        torch.distributed.init_process_group(backend="hccl", init_method="env://")  #: M301
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
    if args.sync_bn:

        print("using apex synced BN")
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)  #: M504
    memory_format = torch.contiguous_format
    if args.channels_last:
        memory_format = torch.channels_last  #: M808
    model = model.npu().to(memory_format=memory_format)  #: M102
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    scaler = torch.amp.GradScaler("npu")  #: M403
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)  #: M503
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=lambda storage, loc: storage.npu(args.gpu))  #: M603
        model.load_state_dict(checkpoint["state_dict"])
    criterion = nn.CrossEntropyLoss().npu()  #: M102
    loader = [(torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))) for _ in range(3)]
    prefetcher = data_prefetcher(loader)
    input, target = prefetcher.next()
    i = 0
    while input is not None:
        i += 1
        if args.prof >= 0 and i == args.prof:
            print("Profiling begun at iteration {}".format(i))
            torch.cuda.cudart().cudaProfilerStart()  #: M912
        torch.npu.mstx.range_push("Body of iteration {}".format(i))  #: M911
        torch.npu.mstx.range_push("forward")  #: M911
        with torch.amp.autocast("npu"):  #: M404
            output = model(input)
            loss = criterion(output, target)
        torch.npu.mstx.range_pop()  #: M911
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        torch.npu.synchronize()  #: M201
        torch.npu.mstx.range_pop()  #: M911
        print(i, "loss", loss.item())
        input, target = prefetcher.next()
    if args.save:
        torch.save({"state_dict": model.state_dict()}, args.save)


if __name__ == "__main__":
    main()
