#!/usr/bin/env bash
# The environment of NPU jobs: source it. Safe to repeat, harmless without a driver.
# shellcheck source-path=SCRIPTDIR source=../common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
set_npu_environment
