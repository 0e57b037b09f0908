import torch

if torch.version.cuda is not None and float(torch.version.cuda) >= 11.8:  #: M210
    print("new")
