#!/usr/bin/env bash
# The whole way: check a corpus, train a voice, begin another one with it, and let it speak.
source "$(dirname "$0")/common.sh"
mkdir -p "$RUNS"
run "$MYXTTS" prepare "$CORPUS" --batch-size 4 --html "$RUNS/prepare.html"
run "$MYXTTS" train --train-data "$CORPUS" --checkpoint-dir "$RUNS/own_voice" --batch-size 4 --max-steps "$STEPS"
run "$MYXTTS" train --from "$RUNS/own_voice" --train-data "$CORPUS" --checkpoint-dir "$RUNS/fine_tuned" --batch-size 4 --max-steps "$STEPS"
run "$MYXTTS" synth --checkpoint "$RUNS/fine_tuned" --text "one two three." --out "$RUNS/spoken.wav"
