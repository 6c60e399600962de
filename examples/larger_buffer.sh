#!/usr/bin/env bash
# A ring of 100 ready batches instead of 50, for storage that stalls now and then.
source "$(dirname "$0")/common.sh"
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/larger_buffer" --batch-size 4 --buffer-size 100 --max-steps "$STEPS"
