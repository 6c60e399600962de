// Joins the sounds of a text's sentences: natural pauses, no clicks.
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

// The same joins while the sentences are still being made. Samples that a later join may change are held back: the
// silence at the end, and a few milliseconds before it. One thread at a time.
class SpeechJoiner {
 public:
  explicit SpeechJoiner(int sample_rate) : sample_rate_(sample_rate) {}

  // The next samples of the sentence.
  void add(std::span<const float> samples);
  // The sentence is over; after a pause another one may follow.
  void end_sentence(double pause_s);
  // What can no longer change, in order, each sample once.
  std::vector<float> take();
  // What is left, after the last sentence.
  std::vector<float> take_rest();

 private:
  void join();

  int sample_rate_;
  std::vector<float> held_;  // the end of the speech so far
  bool between_ = false;     // a join is due, and `begun_` is what follows it
  std::vector<float> begun_;
  double pause_s_ = 0;
};

}  // namespace myxtts
