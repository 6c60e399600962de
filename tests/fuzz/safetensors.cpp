// Checkpoints, vocoders and voices to share are safetensors files, and what they say of the voice is in their metadata.
#include "artifacts/safetensors.h"

#include "fuzz.h"
#include "synth/voice_description.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const SafetensorsFile file(fuzz::file_of(input));
  uint64_t bytes = 0;
  for (const std::string& name : file.names()) bytes += file.tensor(name).data.size();
  fuzz::expect(bytes <= input.size());
  fuzz::run([&] { file.verify(); });
  const VoiceDescription voice =
      VoiceDescription::from_metadata({file.metadata().begin(), file.metadata().end()}, "input");
  voice.spec();
  voice.to_metadata();
}
