#!/usr/bin/env bash
# ResNet-50 on ImageNet: accuracy of the newest run, or of --checkpoint=PATH, on 8 devices.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
# shellcheck disable=SC2034  # read by common.sh
recipe=resnet50_imagenet devices=8
run_evaluation "$@"
