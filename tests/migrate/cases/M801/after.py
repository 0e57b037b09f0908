import torch
import torch.backends.cudnn as cudnn
from torch.backends import cudnn as dnn

cudnn.benchmark = True  #: M801
torch.backends.cudnn.benchmark = not False  #: M801
dnn.deterministic = False  #: M801
torch.backends.cudnn.enabled = False  #: M801
