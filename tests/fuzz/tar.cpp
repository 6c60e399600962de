// Tar shards, plain ones and packed ones.
#include "corpus/tar.h"

#include "corpus/rows.h"
#include "fuzz.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const std::filesystem::path path = fuzz::file_of(input, "shard.tar");
  fuzz::run([&] {
    list_tar(path, [&](const TarMember& member) {
      fuzz::expect(member.first_byte <= input.size() && member.bytes <= input.size() - member.first_byte);
    });
  });
  read_rows(find_layout(path), "id|text|normalised", [&](CorpusRow&& row) {
    if (row.place) fuzz::expect(row.place->first_byte + row.place->bytes <= input.size());
  });
}
