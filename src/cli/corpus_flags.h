// What every command that opens a corpus shares: its flags, its options and what it says meanwhile.
#pragma once

#include "cli/commands.h"
#include "corpus/corpus.h"
#include "pipeline/loader.h"

#include <string>
#include <vector>

namespace myxtts {

// Settings that decide what an index holds and which shapes it is fed in, and `more`.
std::vector<std::string> corpus_keys(const std::vector<std::string>& more);

// What the settings and this machine make of the loader; its device is checked. Says so where it is the slow path.
LoaderOptions loader_options(const Config& config, const Console& console);

// Opens it, making its index first where needed, with a progress bar and a line that says why.
Corpus open_corpus_loudly(const std::string& where, const Config& config, PrepareOptions options,
                          const Console& console);

}  // namespace myxtts
