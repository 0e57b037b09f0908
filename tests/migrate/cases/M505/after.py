import torch
from apex.optimizers import FusedAdam, FusedLAMB  #: M510 M510

a = torch.optim.Adam([], lr=0.1, betas=(0.9, 0.99))  #: M505
b = torch.optim.AdamW([], 0.1)  #: M505
c = torch.optim.SGD([], lr=0.1, momentum=0.9, weight_decay=1e-4)  #: M505
d = FusedLAMB([], lr=0.1)  #: M505
e = FusedAdam([], 0.1, True)  #: M505
