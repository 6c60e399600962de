#!/usr/bin/env bash
# The default: one GPU if there is one, otherwise the CPU. Nothing has to be said.
source "$(dirname "$0")/common.sh"
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/default" --batch-size 4 --max-steps "$STEPS"
