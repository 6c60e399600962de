// Joins the sounds of a text's sentences: natural pauses, no clicks. Pure functions; any thread.
#pragma once

#include <span>
#include <vector>

namespace myxtts {

// Silence between two pieces of speech, in seconds, by the punctuation mark (see clauses.h) that ends the first; 0 if
// the text was cut inside a clause.
double pause_after(char mark);

// Appends a piece. Silence that the pieces bring along counts as part of the pause: more is cut off, less is filled up.
// The edges of the cut fade over some milliseconds.
void append_speech(std::vector<float>& speech, std::span<const float> piece, double pause_s, int sample_rate);

}  // namespace myxtts
