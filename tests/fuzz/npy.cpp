// Mels as .npy.
#include "features/npy.h"

#include "fuzz.h"

using namespace myxtts;

FUZZ_TARGET(input) {
  const Matrix matrix = read_npy(fuzz::file_of(input));
  fuzz::expect(matrix.values.size() * sizeof(float) <= input.size());
  fuzz::expect(static_cast<uint64_t>(matrix.rows * matrix.columns) == matrix.values.size());
}
