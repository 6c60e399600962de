#include "corpus/tar.h"

#include "base/error.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <vector>

namespace myxtts {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t block_bytes = 512;
constexpr uint64_t max_record_bytes = 1 << 20;            // of a pax or long-name record
constexpr uint64_t octal_size_limit = uint64_t{1} << 33;  // eleven octal digits

struct Header {
  char name[100];
  char mode[8], uid[8], gid[8];
  char size[12], time[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6], version[2];
  char user[32], group[32];
  char device_major[8], device_minor[8];
  char prefix[155];
  char unused[12];
};
static_assert(sizeof(Header) == block_bytes);

enum : char {
  type_file = '0',
  type_old_file = '\0',
  type_contiguous_file = '7',
  type_hard_link = '1',  // up to type_fifo, whatever has no bytes of its own
  type_fifo = '6',
  type_pax = 'x',
  type_global_pax = 'g',
  type_long_name = 'L',
  type_long_link = 'K',
  type_sparse = 'S',
};

bool is_file(char type) { return type == type_file || type == type_old_file || type == type_contiguous_file; }

uint64_t padded(uint64_t bytes) { return (bytes + block_bytes - 1) / block_bytes * block_bytes; }

template <size_t Size>
std::string_view text_of(const char (&field)[Size]) {
  return {field, strnlen(field, Size)};
}

// With the checksum's own field taken as spaces. Some old writers added up signed bytes.
template <typename Byte>
int64_t checksum_of(Header header) {
  std::fill(std::begin(header.checksum), std::end(header.checksum), ' ');
  int64_t sum = 0;
  for (uint64_t i = 0; i < block_bytes; ++i) sum += static_cast<Byte>(reinterpret_cast<const char*>(&header)[i]);
  return sum;
}

// Octal digits between optional spaces, or GNU's big-endian number, marked by the first bit.
template <size_t Size>
std::optional<uint64_t> number_of(const char (&field)[Size]) {
  uint64_t value = 0;
  const auto first = static_cast<uint8_t>(field[0]);
  if ((first & 0x80) != 0) {
    if ((first & 0x7F) != 0) return std::nullopt;  // negative, or beyond 64 bits
    for (size_t i = 1; i < Size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(field[i]);
    }
    return value;
  }
  std::string_view digits = text_of(field);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;
}

const char* compression_of(const Header& header) {
  using namespace std::string_view_literals;
  static constexpr std::pair<std::string_view, const char*> known[] = {
      {"\x1F\x8B"sv, "gzip"},         {"BZh"sv, "bzip2"},         {"\xFD\x37\x7A\x58\x5A"sv, "xz"},
      {"\x28\xB5\x2F\xFD"sv, "zstd"}, {"\x1F\x9D"sv, "compress"}, {"\x04\x22\x4D\x18"sv, "lz4"},
      {"PK\x03\x04"sv, "zip"},
  };
  const std::string_view start(header.name, sizeof header.name);
  for (const auto& [magic, name] : known) {
    if (start.starts_with(magic)) return name;
  }
  return nullptr;
}

class TarReader {
 public:
  explicit TarReader(const fs::path& path) : file_(path) {
    if (file_.size_bytes() == 0) damaged(0, "is empty");
  }

  std::optional<TarMember> next() {
    Overrides overrides;
    Header header;
    uint64_t at = at_;
    for (; read_header(header); at = at_) {
      const uint64_t body = at + block_bytes;
      const bool of_next = std::string_view("xXLKg").find(header.type) != std::string_view::npos;
      const uint64_t bytes = body_bytes(header, at, of_next ? std::nullopt : overrides.bytes);
      at_ = body + padded(bytes);
      if (of_next) {
        take_record(header.type, body, bytes, overrides);
        continue;
      }
      if (header.type == type_sparse || overrides.sparse) damaged(at, "has a sparse member; make it without --sparse");
      const std::string name = overrides.name.empty() ? name_of(header) : overrides.name;
      if (is_file(header.type) && !name.ends_with('/')) return TarMember{name, body, bytes};
      overrides = {};
    }
    if (overrides.any) damaged(at, "ends where the member of a long name should begin");
    return std::nullopt;
  }

 private:
  // What records before a member say of it.
  struct Overrides {
    std::string name;
    bool name_is_pax = false;  // which counts more than GNU's
    std::optional<uint64_t> bytes;
    bool sparse = false;
    bool any = false;
  };

  // False at the end: too few bytes for a header, or empty blocks with nothing behind them that is one. Another tar may
  // follow: `cat a.tar b.tar` loses nothing.
  bool read_header(Header& header) {
    constexpr int max_empty_blocks = 4096;
    for (int empty = 0; empty < max_empty_blocks; ++empty, at_ += block_bytes) {
      if (!read_block(header)) return false;
      const auto* bytes = reinterpret_cast<const char*>(&header);
      if (std::all_of(bytes, bytes + block_bytes, [](char byte) { return byte == 0; })) continue;
      if (has_checksum(header)) return true;
      if (empty > 0) return false;  // what lies behind the end of a tar may be anything
      const char* const compression = at_ == 0 ? compression_of(header) : nullptr;
      if (compression != nullptr) {
        reject_input("tar", "{} is compressed ({}; at byte {})", file_.path().string(), compression, at_byte(0),
                     way_out("unpack it to a plain tar"));
      }
      damaged(at_, at_ == 0 ? "is not a tar, or its first header is damaged" : "has a damaged header");
    }
    return false;
  }

  bool read_block(Header& header) const {
    const uint64_t left = file_.size_bytes() - std::min(at_, file_.size_bytes());
    if (left < block_bytes && at_ == 0) damaged(0, "is too short for a tar");
    if (left < block_bytes) return false;
    if (file_.read_at(at_, std::as_writable_bytes(std::span(&header, 1))) < block_bytes) damaged(at_, "is cut short");
    return true;
  }

  static bool has_checksum(const Header& header) {
    const std::optional<uint64_t> claimed = number_of(header.checksum);
    const auto sum = static_cast<int64_t>(claimed.value_or(0));
    return claimed && (sum == checksum_of<uint8_t>(header) || sum == checksum_of<int8_t>(header));
  }

  uint64_t body_bytes(const Header& header, uint64_t at, std::optional<uint64_t> given) const {
    if (header.type >= type_hard_link && header.type <= type_fifo) return 0;
    const std::optional<uint64_t> bytes = given ? given : number_of(header.size);
    if (!bytes) damaged(at, "has a member whose size is not a number");
    const uint64_t left = file_.size_bytes() - at - block_bytes;
    if (*bytes > left)
      damaged(at, fmt::format("has a member of {} bytes where {} are left: it is cut short", *bytes, left));
    return *bytes;
  }

  static std::string name_of(const Header& header) {
    const std::string name(text_of(header.name));
    const bool posix = std::memcmp(header.magic, "ustar", 6) == 0;  // GNU keeps times where POSIX has the prefix
    return posix && header.prefix[0] != 0 ? std::string(text_of(header.prefix)) + '/' + name : name;
  }

  void take_record(char type, uint64_t at, uint64_t bytes, Overrides& overrides) const {
    if (type == type_long_link || type == type_global_pax) return;
    if (bytes > max_record_bytes) {
      damaged(at, fmt::format("has a name record of {} bytes; at most {} are read", bytes, max_record_bytes));
    }
    std::string record(bytes, '\0');
    if (file_.read_at(at, std::as_writable_bytes(std::span(record))) != bytes) damaged(at, "is cut short");
    overrides.any = true;
    if (type != type_long_name) return take_pax(record, at, overrides);
    if (!overrides.name_is_pax) overrides.name = record.substr(0, record.find('\0'));
  }

  // Lines of "LENGTH KEY=VALUE\n", where LENGTH counts itself and the line's end.
  void take_pax(std::string_view lines, uint64_t at, Overrides& overrides) const {
    while (!lines.empty() && lines.front() != '\0') {
      size_t length = 0;
      const char* const digits_end = std::from_chars(lines.data(), lines.data() + lines.size(), length).ptr;
      const auto start = static_cast<size_t>(digits_end - lines.data()) + 1;
      if (length > lines.size() || length <= start || lines[start - 1] != ' ' || lines[length - 1] != '\n') {
        damaged(at, "has a pax record that is not 'length key=value'");
      }
      const std::string_view line = lines.substr(start, length - 1 - start);
      const size_t equals = line.find('=');
      if (equals == std::string_view::npos) damaged(at, "has a pax record without '='");
      take_pax_value(line.substr(0, equals), line.substr(equals + 1), at, overrides);
      lines.remove_prefix(length);
      at += length;
    }
  }

  void take_pax_value(std::string_view key, std::string_view value, uint64_t at, Overrides& overrides) const {
    if (key == "path" && !value.empty()) {
      overrides.name = value;
      overrides.name_is_pax = true;
    }
    if (key == "size" && !value.empty()) {
      uint64_t bytes = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), bytes);
      if (error != std::errc() || end != value.data() + value.size())
        damaged(at, "has a pax size that is not a number");
      overrides.bytes = bytes;
    }
    if (key.starts_with("GNU.sparse.")) overrides.sparse = true;
  }

  [[noreturn]] void damaged(uint64_t at, std::string_view reason) const {
    fail_as(ErrorCode::unreadable, "tar", "{} {} (at byte {})", file_.path().string(), reason, at_byte(at));
  }

  ReadOnlyFile file_;
  uint64_t at_ = 0;
};

bool is_plain_name(const std::string& name) {
  return name.size() <= sizeof(Header::name) &&
         std::all_of(name.begin(), name.end(), [](char letter) { return letter >= ' ' && letter <= '~'; });
}

std::string pax_line(std::string_view key, std::string_view value) {
  const size_t others = key.size() + value.size() + 3;
  size_t length = others + 1;
  while (others + std::to_string(length).size() != length) length = others + std::to_string(length).size();
  return fmt::format("{} {}={}\n", length, key, value);
}

// What does not fit the member's own header; empty when all does.
std::string pax_lines(const std::string& name, uint64_t bytes) {
  std::string lines;
  if (!is_plain_name(name)) lines += pax_line("path", name);
  if (bytes >= octal_size_limit) lines += pax_line("size", std::to_string(bytes));
  return lines;
}

template <size_t Size>
void put(char (&field)[Size], std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), Size), field);
}

Header header_for(const std::string& name, char type, uint64_t bytes) {
  Header header{};
  put(header.name, name);
  for (char& letter : header.name) {
    if (letter != 0 && (letter < ' ' || letter > '~')) letter = '?';  // the pax line has the true name
  }
  put(header.mode, "0000644");
  put(header.uid, "0000000");
  put(header.gid, "0000000");
  put(header.size, fmt::format("{:011o}", bytes < octal_size_limit ? bytes : 0));
  put(header.time, "00000000000");
  header.type = type;
  put(header.magic, "ustar");
  put(header.version, "00");
  put(header.device_major, "0000000");
  put(header.device_minor, "0000000");
  put(header.checksum, fmt::format("{:06o}", checksum_of<uint8_t>(header)));
  header.checksum[7] = ' ';
  return header;
}

}  // namespace

void list_tar(const fs::path& path, const std::function<void(const TarMember&)>& member) {
  TarReader reader(path);
  while (const std::optional<TarMember> next = reader.next()) member(*next);
}

std::optional<TarMember> first_tar_member(const fs::path& path) { return TarReader(path).next(); }

uint64_t tar_member_bytes(const std::string& name, uint64_t bytes) {
  const std::string lines = pax_lines(name, bytes);
  return block_bytes + padded(bytes) + (lines.empty() ? 0 : block_bytes + padded(lines.size()));
}

uint64_t TarWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  if (name.empty() || name.ends_with('/') || name.find('\0') != std::string::npos) {
    fail("tar", "{} cannot hold a member named '{}' (at byte {})", path_.string(), name, at_byte(position()));
  }
  const std::string lines = pax_lines(name, bytes.size());
  if (!lines.empty()) append("././@PaxHeader", type_pax, std::as_bytes(std::span(lines)));
  const uint64_t first_byte = position() + block_bytes;
  append(name, type_file, bytes);
  return first_byte;
}

void TarWriter::overwrite(uint64_t at, std::span<const std::byte> bytes) {
  if (at > position() || bytes.size() > position() - at) {
    fail("tar", "{} has {} bytes so far; {} cannot be replaced (at byte {})", path_.string(), position(), bytes.size(),
         at_byte(at));
  }
  file_.overwrite(at, bytes);
}

void TarWriter::finish() {
  file_.write(std::vector<std::byte>(tar_closing_bytes));
  file_.finish();
}

void TarWriter::append(const std::string& name, char type, std::span<const std::byte> bytes) {
  const Header header = header_for(name, type, bytes.size());
  file_.write(std::as_bytes(std::span(&header, 1)));
  file_.write(bytes);
  static constexpr std::byte zeros[block_bytes] = {};
  file_.write(std::span(zeros).first(padded(bytes.size()) - bytes.size()));
}

}  // namespace myxtts
