#!/usr/bin/env bash
# Everything said aloud, with a corpus of its own for validation.
source "$(dirname "$0")/common.sh"
VALIDATION=${VALIDATION:-$CORPUS-validation}
[ -e "$VALIDATION" ] || run "$MYXTTS" demo-data "$VALIDATION" --clips 10 --seed 2
run "$MYXTTS" train --train-data "$CORPUS" --val-data "$VALIDATION" --checkpoint-dir "$RUNS/production" --model-size tiny \
  --optimization-level enhanced --enable-static-shapes --batch-size 4 --max-text-length 200 --max-mel-frames 800 --max-steps "$STEPS"
