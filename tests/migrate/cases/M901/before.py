import horovod.torch as hvd  #: M901
import torch

hvd.init()  #: M901
torch.manual_seed(hvd.rank())  #: M901
