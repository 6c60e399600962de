// metadata.csv in its formats, and the cleaning of its texts.
#include "corpus/rows.h"
#include "fuzz.h"
#include "text/cleaner.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  static const char* const formats[] = {"id|text|normalised", "id|speaker|text", "id|speaker|language|text"};
  const std::string format = formats[fuzz::take_byte(input) % 3];
  const CorpusLayout layout = find_layout(fuzz::file_of(input, "metadata.csv"));
  fuzz::expect(count_rows(layout) > 0);
  read_rows(layout, format, [](CorpusRow&& row) {
    fuzz::expect(row.line > 0);
    fuzz::run([&] { clean_text(row.text, row.language == "fa" ? "fa" : "en"); });
  });
}
