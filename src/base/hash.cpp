#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace myxtts {
namespace {

constexpr uint64_t prime_1 = 0x9E3779B185EBCA87ULL;
constexpr uint64_t prime_2 = 0xC2B2AE3D27D4EB4FULL;
constexpr uint64_t prime_3 = 0x165667B19E3779F9ULL;
constexpr uint64_t prime_4 = 0x85EBCA77C2B2AE63ULL;
constexpr uint64_t prime_5 = 0x27D4EB2F165667C5ULL;

template <typename Word>
Word load(const unsigned char* at) {
  static_assert(std::endian::native == std::endian::little, "file formats and hashes here are little-endian");
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t round(uint64_t lane, uint64_t word) { return std::rotl(lane + word * prime_2, 31) * prime_1; }

uint64_t merge(uint64_t hash, uint64_t lane) { return (hash ^ round(0, lane)) * prime_1 + prime_4; }

using Lanes = std::array<uint64_t, 4>;

Lanes first_lanes(uint64_t seed) { return {seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1}; }

// Takes all blocks of 32 bytes; returns where the rest begins.
const unsigned char* take_blocks(Lanes& lanes, const unsigned char* at, const unsigned char* end) {
  for (; end - at >= 32; at += 32) {
    for (size_t i = 0; i < 4; ++i) lanes[i] = round(lanes[i], load<uint64_t>(at + 8 * i));
  }
  return at;
}

// `at` to `end` are the bytes after the last whole block.
uint64_t finish(const Lanes& lanes, uint64_t seed, uint64_t size, const unsigned char* at, const unsigned char* end) {
  uint64_t hash = seed + prime_5;
  if (size >= 32) {
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
    for (const uint64_t lane : lanes) hash = merge(hash, lane);
  }
  hash += size;
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ round(0, load<uint64_t>(at)), 27) * prime_1 + prime_4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (load<uint32_t>(at) * prime_1), 23) * prime_2 + prime_3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ (*at * prime_5), 11) * prime_1;
  hash = (hash ^ (hash >> 33)) * prime_2;
  hash = (hash ^ (hash >> 29)) * prime_3;
  return hash ^ (hash >> 32);
}

const unsigned char* start_of(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

uint64_t hash_bytes(const void* bytes, size_t size, uint64_t seed) {
  const auto* const begin = static_cast<const unsigned char*>(bytes);
  Lanes lanes = first_lanes(seed);
  const unsigned char* const rest = take_blocks(lanes, begin, begin + size);
  return finish(lanes, seed, size, rest, begin + size);
}

StreamHash::StreamHash(uint64_t seed) : seed_(seed), lanes_(first_lanes(seed)), rest_{} {}

void StreamHash::add(std::span<const std::byte> bytes) {
  const size_t waiting = size_ % rest_.size();
  size_ += bytes.size();
  if (waiting > 0) {
    const size_t taken = std::min(bytes.size(), rest_.size() - waiting);
    std::copy_n(bytes.begin(), taken, rest_.begin() + waiting);
    bytes = bytes.subspan(taken);
    if (waiting + taken < rest_.size()) return;
    take_blocks(lanes_, start_of(rest_), start_of(rest_) + rest_.size());
  }
  const unsigned char* const end = start_of(bytes) + bytes.size();
  const auto left = static_cast<size_t>(end - take_blocks(lanes_, start_of(bytes), end));
  std::copy_n(bytes.end() - static_cast<ptrdiff_t>(left), left, rest_.begin());
}

uint64_t StreamHash::value() const {
  return finish(lanes_, seed_, size_, start_of(rest_), start_of(rest_) + size_ % rest_.size());
}

std::string hash_hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace myxtts
