#!/usr/bin/env bash
# ResNet-50 on CIFAR-100, 2 epochs on 8 devices with 32 images each, for speed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_cifar100_bs32 network=Resnet50_cifar_for_PyTorch kind=perf devices=8 replicas=8 batch_size=256 length='--epochs 2'
run_training "$@"
