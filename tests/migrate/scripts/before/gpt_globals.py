"""
A small language model with its settings as module globals. To run on one GPU:
$ python gpt_globals.py
To run with DDP on 4 gpus: torchrun --standalone --nproc_per_node=4 gpt_globals.py, backend nccl
"""
import inspect
import os
from contextlib import nullcontext

import torch
from torch.distributed import destroy_process_group, init_process_group
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

max_iters = 3
backend = 'nccl'  # 'nccl', 'gloo', etc.  #: M301
device = 'cuda'  # examples: 'cpu', 'cuda', 'cuda:0', 'cuda:1' etc., or try 'mps' on macbooks  #: M104
dtype = 'bfloat16' if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else 'float16'  #: M201 M201
compile = False  # use PyTorch 2.0 to compile the model to be faster
config = {k: v for k, v in globals().items() if not k.startswith('_') and isinstance(v, (int, float, bool, str))}

ddp = int(os.environ.get('RANK', -1)) != -1
if ddp:
    init_process_group(backend=backend)
    ddp_local_rank = int(os.environ['LOCAL_RANK'])
    device = f'cuda:{ddp_local_rank}'  #: M105
    torch.cuda.set_device(device)  #: M201
    master_process = int(os.environ['RANK']) == 0
else:
    master_process = True
torch.manual_seed(1337)
torch.backends.cuda.matmul.allow_tf32 = True  # allow tf32 on matmul  #: M804
torch.backends.cudnn.allow_tf32 = True  # allow tf32 on cudnn  #: M804
device_type = 'cuda' if 'cuda' in device else 'cpu'  # for later use in torch.autocast  #: M107 M106
ptdtype = {'float32': torch.float32, 'bfloat16': torch.bfloat16, 'float16': torch.float16}[dtype]
ctx = nullcontext() if device_type == 'cpu' else torch.amp.autocast(device_type=device_type, dtype=ptdtype)


def get_batch():
    x = torch.randint(0, 32, (4, 8))
    y = torch.randint(0, 32, (4, 8))
    if device_type == 'cuda':  #: M106
        # pin arrays x,y, which allows us to move them to GPU asynchronously (non_blocking=True)
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    else:
        x, y = x.to(device), y.to(device)
    return x, y


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = torch.nn.Embedding(32, 16)
        self.head = torch.nn.Linear(16, 32)

    def forward(self, x, y):
        logits = self.head(self.emb(x))
        return F.cross_entropy(logits.view(-1, 32), y.view(-1))

    def configure_optimizers(self, device_type):
        # Create AdamW optimizer and use the fused version if it is available
        fused_available = 'fused' in inspect.signature(torch.optim.AdamW).parameters
        use_fused = fused_available and device_type == 'cuda'  #: M812
        extra_args = dict(fused=True) if use_fused else dict()
        return torch.optim.AdamW(self.parameters(), lr=1e-3, **extra_args)


model = Model()
model.to(device)
scaler = torch.cuda.amp.GradScaler(enabled=(dtype == 'float16'))  #: M402
optimizer = model.configure_optimizers(device_type)
if compile:
    print("compiling the model... (takes a ~minute)")
    model = torch.compile(model)  #: M809
if ddp:
    model = DDP(model, device_ids=[ddp_local_rank])
for iter_num in range(max_iters):
    X, Y = get_batch()
    with ctx:
        loss = model(X, Y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if master_process:
        print(f"iter {iter_num}: loss {loss.item():.4f} on {device_type}")
if ddp:
    destroy_process_group()
