# train.py
#!/usr/bin/env	python3
""" train network using pytorch

author: written in this style for a test
"""
import argparse
import os

import torch
import torch_npu
import torch.nn as nn


def train(epoch):
    net.train()
    for batch_index, (images, labels) in enumerate(batches):
        if args.gpu:
            labels = labels.npu()  #: M102
            images = images.npu()  #: M102
        optimizer.zero_grad()
        outputs = net(images)
        loss = loss_function(outputs, labels)
        loss.backward()
        optimizer.step()
        print('Training Epoch: {epoch} [{step}]\tLoss: {:0.4f}'.format(loss.item(), epoch=epoch, step=batch_index))


@torch.no_grad()
def eval_training(epoch=0):
    net.eval()
    correct = 0.0
    for (images, labels) in batches:
        if args.gpu:
            images = images.npu()  #: M102
            labels = labels.npu()  #: M102
        outputs = net(images)
        _, preds = outputs.max(1)
        correct += preds.eq(labels).sum()
    if args.gpu:
        print('GPU INFO.....')
        print(torch.npu.memory_summary(), end='')  #: M201
    return correct.float() / 16


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('-gpu', action='store_true', default=False, help='use gpu (cuda) or not')
    parser.add_argument('-b', type=int, default=8, help='batch size for dataloader')
    parser.add_argument('-resume', default='', help='weights to resume from, for example cuda.pth')
    args = parser.parse_args()
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 10))
    if args.gpu:
        net = net.npu()  #: M102
    batches = [(torch.randn(args.b, 3, 2, 2), torch.randint(0, 10, (args.b,))) for _ in range(2)]
    loss_function = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    if args.resume:
        net.load_state_dict(torch.load(os.path.join('checkpoint', 'cuda', args.resume), map_location="cpu"))  #: M601
    for epoch in range(1):
        train(epoch)
        print('accuracy', eval_training(epoch).item())
