// A JSON-lines manifest.
#include "corpus/rows.h"
#include "fuzz.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const CorpusLayout layout = find_layout(fuzz::file_of(input, "manifest.jsonl"));
  read_rows(layout, "id|text|normalised", [](CorpusRow&& row) {
    fuzz::expect(row.line > 0);
    if (row.place) RootFolder(fuzz::folder()).outside(row.place->path);
  });
}
