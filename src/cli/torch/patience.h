// libgomp's threads wait for each other by spinning. Beside other programs they take the core from the very thread that
// they wait for (bench/results/synth_speed.json). How they wait is read from the environment before main begins, so the
// program begins again with it said; where a user has said it, nothing happens. To be called before any work is done.
#pragma once

namespace myxtts {

void wait_without_spinning();

}  // namespace myxtts
