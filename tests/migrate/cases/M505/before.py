import torch
from apex.optimizers import FusedAdam, FusedLAMB, FusedSGD  #: M510 M510

a = FusedAdam([], lr=0.1, betas=(0.9, 0.99), adam_w_mode=False)  #: M505
b = FusedAdam([], 0.1, set_grad_none=True)  #: M505
c = FusedSGD([], lr=0.1, momentum=0.9, weight_decay=1e-4)  #: M505
d = FusedLAMB([], lr=0.1)  #: M505
e = FusedAdam([], 0.1, True)  #: M505
