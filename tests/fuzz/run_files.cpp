// What a run has left behind and is read again: metrics.jsonl, quarantine.jsonl, and the phonemes of a corpus.
#include "artifacts/run_report.h"
#include "corpus/quarantine.h"
#include "fuzz.h"
#include "text/phoneme_cache.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  fuzz::file_of(input, "metrics.jsonl");
  fuzz::run([] { make_run_report(read_run(fuzz::folder())); });
  const std::filesystem::path file = fuzz::file_of(input, "quarantine.jsonl");
  fuzz::run([&] {
    Quarantine quarantine(file);
    const std::vector<BadClip> bad = {
        make_bad_clip("a", "a.wav", Error({ErrorCode::unreadable, "read", "broken", {}, {}, 7}))};
    quarantine.add(bad);
    quarantine.add(bad);
  });
  fuzz::run([&] { read_phoneme_cache(file); });
}
