#!/usr/bin/env bash
# ResNet-50 on CIFAR-100, the whole schedule on 1 device.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_cifar100 network=Resnet50_cifar_for_PyTorch kind=acc devices=1 replicas=1 batch_size=16 length='--epochs 200'
run_training "$@"
