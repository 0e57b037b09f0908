'''Train CIFAR10 with PyTorch.'''
import argparse
import os

import torch
import torch_npu
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim as optim

parser = argparse.ArgumentParser(description='PyTorch CIFAR10 Training')
parser.add_argument('--lr', default=0.1, type=float, help='learning rate')
parser.add_argument('--resume', '-r', action='store_true', help='resume from checkpoint')
args = parser.parse_args()

device = 'npu' if torch.npu.is_available() else 'cpu'  #: M107 M201
best_acc = 0

# Data
inputs_all, targets_all = torch.randn(32, 3, 8, 8), torch.randint(0, 10, (32,))

# Model: net = net.cuda() once stood here
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 10))
net = net.to(device)
if device == 'npu':  #: M106
    if torch.npu.device_count() > 8:  #: M201
        net = torch.nn.DataParallel(net)  #: M306
    cudnn.benchmark = True  #: M801

if args.resume:
    assert os.path.isdir('checkpoint'), 'Error: no checkpoint directory found!'
    checkpoint = torch.load('./checkpoint/ckpt_cuda.pth', map_location="cpu")  #: M601
    net.load_state_dict(checkpoint['net'])
    best_acc = checkpoint['acc']

criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)


def train(epoch):
    print('\nEpoch: %d' % epoch)
    net.train()
    for batch_idx in range(4):
        inputs, targets = inputs_all[batch_idx * 8:batch_idx * 8 + 8], targets_all[batch_idx * 8:batch_idx * 8 + 8]
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        print(batch_idx, 'Loss: %.3f' % loss.item())


for epoch in range(1):
    train(epoch)
print('trained on', next(net.parameters()).device.type)
