#include "base/error.h"
#include "cli/commands.h"
#include "cli/torch/patience.h"
#include "device/device.h"
#include "serve/loopback.h"
#include "serve/server.h"
#include "synth/synthesizer.h"
#include "synth/voice_file.h"

#include <csignal>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>
#include <malloc.h>
#include <unistd.h>

namespace myxtts {
namespace {

struct Options {
  std::string checkpoint, vocoder, device = "cpu";
  ServerSettings server;
};

void check(const Options& options) {
  if (options.checkpoint.empty()) reject_input("serve", "no voice is named", way_out("give --checkpoint FILE"));
  if (options.server.port < 0 || options.server.port > 65535) {
    reject_input("serve", "--port is {}", options.server.port,
                 way_out("it must be from 0 to 65535; 0 is any free one"));
  }
  if (options.server.queue < 1 || options.server.queue > 900) {  // httplib selects, so descriptors are below 1024
    reject_input("serve", "--queue is {}", options.server.queue, way_out("it must be from 1 to 900"));
  }
}

// SIGINT and SIGTERM go to one thread, which may do what a handler may not. The first stops the server, the second
// ends the program. The signals must be blocked before any other thread begins.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  // Does not wait for the thread: it ends with the program.
  void stop_on_signal(const std::shared_ptr<SpeechServer>& server) const {
    std::thread([signals = signals_, stopped = std::weak_ptr(server)] {
      int signal = 0;
      sigwait(&signals, &signal);
      if (const auto running = stopped.lock()) running->stop();
      sigwait(&signals, &signal);
      _exit(128 + signal);
    }).detach();
  }

 private:
  sigset_t signals_{};
};

// Otherwise the heaps of many threads each keep what their largest request needed: 100 MB of resident memory after
// 1,500 hostile requests, where two heaps keep 15.
void share_heaps() { mallopt(M_ARENA_MAX, 2); }

int serve(Options options, const Console& console) {
  check(options);
  if (options.device == "cpu") wait_without_spinning();
  share_heaps();
  const StopSignals signals;
  const Synthesizer voice(find_voice(options.checkpoint), options.device == "cpu" ? -1 : parse_device(options.device),
                          options.vocoder);
  options.server.warn = [&console](const std::string& text) { console.warn("{}", text); };
  const auto server = std::make_shared<SpeechServer>(served_voice(voice), options.server);
  signals.stop_on_signal(server);
  voice.warm_up();
  if (!is_loopback(options.server.host)) {
    console.warn("--host {}: anyone who can reach this machine can use the server", options.server.host);
  }
  const bool v6 = options.server.host.find(':') != std::string::npos;
  console.info("serving at http://{}:{}; Ctrl-C stops it", v6 ? "[" + options.server.host + "]" : options.server.host,
               server->port());
  server->run();
  console.info("stopped");
  return 0;
}

}  // namespace

void add_serve_command(CLI::App& app, Program& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("serve", "speak over HTTP: OpenAI's speech endpoint, and a page");
  command->add_option("--checkpoint", options->checkpoint, "the voice, or a folder of checkpoints (its best one)")
      ->type_name("FILE");
  command->add_option("--host", options->server.host, "address to listen on; 0.0.0.0 is all of this machine's")
      ->capture_default_str()
      ->type_name("ADDRESS");
  command->add_option("--port", options->server.port, "port to listen on; 0: any free one")
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--queue", options->server.queue, "texts spoken at a time; more requests get status 429")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--vocoder", options->vocoder,
                   "a vocoder; otherwise vocoder.safetensors beside the voice, or Griffin-Lim")
      ->type_name("FILE");
  command->add_option("--device", options->device, "cpu or cuda:N")->capture_default_str()->type_name("");
  command->callback(
      [&program, options] { program.run = [options](Console& console) { return serve(*options, console); }; });
}

}  // namespace myxtts
