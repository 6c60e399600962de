// The rows of a corpus: `metadata.csv` in a folder, fields between pipes, no quoting, UTF-8. A byte-order mark and CRLF
// are tolerated.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace myxtts {

struct MetadataRow {
  int line = 0;  // counted from 1
  std::string id;
  std::string speaker;
  std::string text;  // the normalised text where there is one
};

// `format` is data.metadata_format. Rows are as they stand: a row with too few fields has an empty text.
std::vector<MetadataRow> read_metadata(const std::filesystem::path& corpus, const std::string& format);

}  // namespace myxtts
