import torch

x = torch.zeros(2, dtype=torch.complex128)  #: M853
y = torch.sparse_csr_tensor([0, 1], [0], [1.0])  #: M853
