// YAML configurations: what is read is written and read again as the same.
#include "fuzz.h"
#include "settings/config_file.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const ResolvedConfig config = load_config(fuzz::file_of(input, "config.yaml"), "", {});
  const std::string text = config_to_yaml(config.values);
  fuzz::expect(config_to_yaml(config_from_yaml(text, "again")) == text);
}
