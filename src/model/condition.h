// Who speaks and in which language, as one vector per row: that of a reference, or of a table where a row has none, and
// the language's added. Any thread.
#pragma once

#include <ATen/core/Tensor.h>

namespace myxtts {

// As long as any other in root mean square; zeros stay zeros.
at::Tensor unit_rows(const at::Tensor& rows);

// One vector of unit length for each row of `frames`, [rows, frames, width]: their sum. `lengths` is int [rows].
at::Tensor pool_frames(const at::Tensor& frames, const at::Tensor& lengths);

// Rows of a table; -1: zeros. The gradient is deterministic.
at::Tensor rows_of(const at::Tensor& table, const at::Tensor& numbers);

struct ConditionInput {
  at::Tensor speaker_table, language_table;  // [speakers, width] and [languages, width]
  at::Tensor references;                     // [heard, frames, width], of the first rows
  at::Tensor reference_lengths;              // int [heard]; below 1: the row has none
  at::Tensor speaker, language;              // int [rows]; -1: not known
  at::Tensor kept;                           // [rows], uniform
  double dropout = 0;                        // share of the rows that are without condition
};

// [rows, width]. A row without a condition is zeros.
at::Tensor choose_condition(const ConditionInput& input, bool fused);

}  // namespace myxtts
