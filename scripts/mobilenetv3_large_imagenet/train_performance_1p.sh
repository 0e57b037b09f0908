#!/usr/bin/env bash
# MobileNetV3-Large on ImageNet, 64 steps on 1 device for speed.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=mobilenetv3_large_imagenet network=MobileNetV3-Large_ID1784_for_PyTorch kind=perf devices=1 replicas=1 batch_size=128 length='--steps 64'
run_training "$@"
