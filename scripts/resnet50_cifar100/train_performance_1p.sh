#!/usr/bin/env bash
# ResNet-50 on CIFAR-100, 2 epochs on 1 device for speed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_cifar100 network=Resnet50_cifar_for_PyTorch kind=perf devices=1 replicas=1 batch_size=16 length='--epochs 2'
run_training "$@"
