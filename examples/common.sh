# What the examples share; each sources it. It is not an example itself.
# MYXTTS: the program; CORPUS: the corpus to train on, made if it is not there; STEPS: how long to train.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
MYXTTS=${MYXTTS:-build/myxtts}
CORPUS=${CORPUS:-build/examples/corpus}
RUNS=${RUNS:-build/examples/runs}
STEPS=${STEPS:-20}

[ -x "$MYXTTS" ] || { echo "$MYXTTS is not there; run 'make build' first" >&2; exit 2; }
[ -e "$CORPUS" ] || "$MYXTTS" demo-data "$CORPUS" --clips 40

# Ends the example, aloud and with success, if this machine has fewer GPUs than it needs.
need_gpus() {
  local gpus
  gpus=$(nvidia-smi -L 2>/dev/null | wc -l) || gpus=0
  [ "$gpus" -ge "$1" ] || { echo "skipped: it needs $1 GPUs, and this machine has $gpus"; exit 0; }
}

# Prints a command, then runs it.
run() { printf '$'; printf ' %q' "$@"; echo; "$@"; }
