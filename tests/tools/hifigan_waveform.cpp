// Runs the HiFi-GAN generator on given weights, for a test that compares it with PyTorch:
//   hifigan_waveform WEIGHTS.txt WEIGHTS.bin FRAMES MEL.bin OUT.bin
// WEIGHTS.txt has a line "name size size ..." per tensor; WEIGHTS.bin holds their float32 values in that order.
#include "base/error.h"
#include "model/hifigan.h"

#include <fstream>
#include <iostream>
#include <sstream>

#include <ATen/ops/empty.h>

namespace {

at::Tensor read_floats(std::istream& in, const std::vector<int64_t>& sizes) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  in.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  if (!in) myxtts::fail("test", "a file ends too early");
  return tensor;
}

void run(char** arguments) {
  std::ifstream names(arguments[1]), values(arguments[2], std::ios::binary), mel(arguments[4], std::ios::binary);
  std::map<std::string, at::Tensor> tensors;
  for (std::string line; std::getline(names, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<int64_t> sizes;
    for (int64_t size = 0; words >> size;) sizes.push_back(size);
    tensors[name] = read_floats(values, sizes);
  }
  constexpr int64_t batch = 2, n_mels = 80;
  const myxtts::HifiganGenerator generator = myxtts::load_hifigan(tensors, n_mels);
  const at::Tensor waveform =
      myxtts::hifigan_waveform(generator, read_floats(mel, {batch, std::stoll(arguments[3]), n_mels})).contiguous();
  std::ofstream out(arguments[5], std::ios::binary);
  out.write(static_cast<const char*>(waveform.data_ptr()), static_cast<std::streamsize>(waveform.nbytes()));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) return 2;
  try {
    run(arguments);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
