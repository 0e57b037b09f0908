"""torch_npu_run: torchrun, with the rendezvous that torch has."""

from torch.distributed.run import main

if __name__ == "__main__":
    main()
