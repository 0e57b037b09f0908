import torch

x = torch.zeros(2, dtype=torch.float64)  #: M851
y = x.double()  #: M851
z = torch.zeros(2, dtype=torch.float64, device="cpu")
