import torch.backends.cudnn as cudnn

cudnn.deterministic = True  #: M802
