#include "base/process.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/system_calls.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace myxtts {

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (std::filesystem::path(folder) / name).string();
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

namespace {

// A file without a name, which a killed process cannot leave behind.
int file_of(std::string_view input) {
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || !write_at(file, std::as_bytes(std::span(input)), 0)) {
    fail("run", "memory for a program's input: {}", system_reason(), way_out("free some memory"));
  }
  return file;
}

struct Child {
  pid_t id = 0;
  bool ended = false;

  int wait() {
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
    ended = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ~Child() {
    if (id <= 0 || ended) return;
    ::kill(id, SIGKILL);
    wait();
  }
};

// All that it prints.
std::string read_within(int descriptor, const std::string& program, const ProgramLimits& limits) {
  const Stopwatch clock;
  std::string output;
  std::vector<char> part(size_t{1} << 16);
  for (;;) {
    const double left_s = limits.seconds - clock.seconds();
    pollfd ready{descriptor, POLLIN, 0};
    if (left_s <= 0 || ::poll(&ready, 1, static_cast<int>(left_s * 1e3) + 1) == 0) {
      fail("run", "{} was stopped after {:g} s", program, limits.seconds,
           way_out("try again when the machine is idle"));
    }
    if (ready.revents == 0) continue;  // interrupted
    const ssize_t count = ::read(descriptor, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return output;
    output.append(part.data(), static_cast<size_t>(count));
    if (output.size() > limits.output_bytes) {
      fail("run", "{} was stopped: it printed more than {} bytes", program, limits.output_bytes,
           way_out("take out the text that it was given, or install a newer version"));
    }
  }
}

struct Pipe {
  Descriptor read, write;
};

// Closed on exec, so that a process started by another thread does not hold it open.
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("run", "no pipe could be made: {}", system_reason());
  return {{ends[0]}, {ends[1]}};
}

pid_t start(const std::vector<std::string>& arguments, int input, int output) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t id = 0;
  const int error = posix_spawn(&id, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail("run", "{} cannot be started: {}", arguments[0], std::strerror(error));
  return id;
}

void close(Descriptor& descriptor) { ::close(std::exchange(descriptor.number, -1)); }

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramLimits& limits,
                          std::string_view input) {
  const Descriptor given{file_of(input)};
  Pipe output = make_pipe();
  Child child{start(arguments, given.number, output.write.number)};
  close(output.write);
  std::string printed = read_within(output.read.number, arguments[0], limits);
  return {child.wait(), std::move(printed)};
}

struct WaitingProgram::Running {
  std::string program;
  Pipe input = make_pipe(), output = make_pipe();
  Child child;
};

WaitingProgram::WaitingProgram(const std::vector<std::string>& arguments) : running_(std::make_unique<Running>()) {
  running_->program = arguments[0];
  ::fcntl(running_->input.write.number, F_SETFL, O_NONBLOCK);
  running_->child.id = start(arguments, running_->input.read.number, running_->output.write.number);
  close(running_->output.write);
}

WaitingProgram::~WaitingProgram() = default;

ProgramResult WaitingProgram::finish(std::string_view input, const ProgramLimits& limits) {
  // This process holds the pipe's other end too: if the program has ended, that is no signal here.
  const bool given = input.size() <= most_input && ::write(running_->input.write.number, input.data(), input.size()) ==
                                                       static_cast<ssize_t>(input.size());
  if (!given) fail("run", "{} takes no input: {}", running_->program, system_reason());
  close(running_->input.read), close(running_->input.write);
  std::string printed = read_within(running_->output.read.number, running_->program, limits);
  return {running_->child.wait(), std::move(printed)};
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace myxtts
