#!/usr/bin/env bash
# ResNet-50 on ImageNet, the whole schedule on 8 devices.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_imagenet network=ResNet50_for_PyTorch kind=acc devices=8 replicas=8 batch_size=4096 length='--epochs 90'
run_training "$@"
