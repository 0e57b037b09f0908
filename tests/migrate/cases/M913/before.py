import torch

torch.cuda.profiler.start()  #: M913
with torch.autograd.profiler.emit_nvtx():  #: M913
    pass
