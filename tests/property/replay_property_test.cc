// Order of events does not matter, and what comes later changes nothing of what is over.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cli/replay_json.h"
#include "fakes/kineto_file.h"
#include "session/replay.h"

namespace flopledger {
namespace {

using fakes::KinetoEvents;
using fakes::TemporaryFile;

struct TimedEvent {
  std::int64_t start_us = 0;
  std::string text;
};

/// Some steps of a training run: ops within each other on two threads, launches, graphs, copies,
/// kernels on two streams of two devices that lag behind, work from before the window.
class RandomTrace {
 public:
  explicit RandomTrace(unsigned seed) : random_(seed) {
    std::int64_t at = 1000;
    for (int step = 0; step < 6; ++step) at = AddStep(step, at);
    for (int i = 0; i < 3; ++i) AddKernel(900 + i * 10, 999'000 + i, false);
    std::stable_sort(events_.begin(), events_.end(), [](const TimedEvent& a, const TimedEvent& b) {
      return a.start_us < b.start_us;
    });
  }

  const std::vector<TimedEvent>& events() const { return events_; }
  static std::string Document(const std::vector<TimedEvent>& events) {
    KinetoEvents written;
    for (const TimedEvent& event : events) written.Raw(event.text);
    return written.Document();
  }

 private:
  std::int64_t Pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  template <typename Write>
  void Add(std::int64_t start_us, Write write) {
    KinetoEvents one;
    write(one);
    events_.push_back({start_us, one.events().front()});
  }

  void AddKernel(std::int64_t not_before, std::int64_t correlation, bool copy) {
    const std::int64_t start = not_before + Pick(3, 60);
    const std::string device = std::to_string(Pick(0, 1));
    const std::string stream = std::to_string(Pick(0, 1) == 0 ? 7 : 20);
    const char* name = Pick(0, 4) == 0 ? "ncclDevKernel_AllReduce" : "sm80_gemm";
    Add(start, [&](KinetoEvents& out) {
      out.Add(copy ? "gpu_memcpy" : "kernel", copy ? "Memcpy HtoD" : name, stream,
              std::to_string(start), std::to_string(Pick(0, 40)),
              R"("device": )" + device + R"(, "stream": )" + stream + R"(, "correlation": )" +
                  std::to_string(correlation));
    });
  }

  std::int64_t AddStep(int step, std::int64_t at) {
    const std::int64_t begin = at;
    const std::int64_t ops = Pick(3, 8);
    for (std::int64_t i = 0; i < ops; ++i) {
      const std::int64_t length = Pick(10, 30);
      const std::string tid = std::to_string(Pick(7, 8));
      const std::string id = std::to_string(++ids_);
      const std::string sizes = R"("Input Dims": [[)" + std::to_string(Pick(1, 9)) +
                                R"(, 4], [4, 3]], "Input type": ["float", "float"], "Ev Idx": )";
      Add(at, [&](KinetoEvents& out) {
        out.Op("aten::linear", std::to_string(at), std::to_string(length), R"("Ev Idx": )" + id,
               tid);
      });
      // Sometimes as long as the op around it: only the recorder's number tells them apart.
      const std::int64_t inset = Pick(0, 2);
      const std::string inner = std::to_string(++ids_);
      Add(at + inset, [&](KinetoEvents& out) {
        out.Op("aten::mm", std::to_string(at + inset), std::to_string(length - 2 * inset),
               sizes + inner, tid);
      });
      const bool graph = Pick(0, 5) == 0;
      const std::int64_t correlation = ++correlations_;
      const std::int64_t call = at + Pick(2, 6);
      Add(call, [&](KinetoEvents& out) {
        out.Call(std::to_string(call), std::to_string(correlation),
                 graph ? "cudaGraphLaunch" : "cudaLaunchKernel", tid);
      });
      for (int k = graph ? 4 : 1; k > 0; --k) AddKernel(call, correlation, Pick(0, 6) == 0);
      at += length + Pick(0, 3);
    }
    Add(begin, [&](KinetoEvents& out) {
      out.Step(std::to_string(step), std::to_string(begin), std::to_string(at - begin));
    });
    return at + Pick(0, 4);
  }

  std::mt19937 random_;
  std::vector<TimedEvent> events_;
  std::int64_t correlations_ = 0;
  std::int64_t ids_ = 0;
};

ReplayResult ReadDocument(const std::string& text, bool lenient = false) {
  const TemporaryFile file(text);
  ReplayOptions options;
  options.lenient = lenient;
  Result<ReplayResult> result = Replay({file.path()}, options);
  EXPECT_TRUE(result.has_value()) << (result.has_value() ? "" : result.error().message());
  if (!result.has_value()) return {};
  for (ReplayTrace& trace : result->traces) trace.file.clear();
  return *std::move(result);
}

TEST(ReplayProperty, ShufflingEventsChangesNothing) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const RandomTrace trace(seed);
    const std::string expected =
        cli::WriteJson(ReadDocument(RandomTrace::Document(trace.events())));
    std::vector<TimedEvent> events = trace.events();
    std::mt19937 random(seed);
    for (int shuffle = 0; shuffle < 4; ++shuffle) {
      std::shuffle(events.begin(), events.end(), random);
      ASSERT_EQ(cli::WriteJson(ReadDocument(RandomTrace::Document(events))), expected);
    }
  }
}

/// Is everything that has to do with the step before `cut_us`?
bool IsOver(const ReplayStep& step, std::int64_t cut_us) {
  const std::int64_t cut_ns = cut_us * 1000;
  return step.activity.host.end_ns <= cut_ns && step.activity.last_end_ns.value_or(0) <= cut_ns;
}

void ExpectSame(const ReplayStep& a, const ReplayStep& b) {
  const StepActivity& x = a.activity;
  const StepActivity& y = b.activity;
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(x.host, y.host);
  EXPECT_EQ(x.launched_kernels, y.launched_kernels);
  EXPECT_EQ(x.launched_kernel_time_sum_ns, y.launched_kernel_time_sum_ns);
  EXPECT_EQ(x.started_kernels, y.started_kernels);
  EXPECT_EQ(x.busy_clipped_ns, y.busy_clipped_ns);
  EXPECT_EQ(x.exposed_communication_clipped_ns, y.exposed_communication_clipped_ns);
  EXPECT_EQ(x.device_window, y.device_window);
  EXPECT_EQ(x.device_busy_ns, y.device_busy_ns);
  EXPECT_EQ(x.device_idle_ns, y.device_idle_ns);
  EXPECT_EQ(a.flops.all_pairs, b.flops.all_pairs);
}

TEST(ReplayProperty, ACutChangesOnlyTheStepsAfterIt) {
  int compared = 0;
  for (unsigned seed = 100; seed < 106; ++seed) {
    const RandomTrace trace(seed);
    const std::vector<TimedEvent>& events = trace.events();
    const ReplayResult whole = ReadDocument(RandomTrace::Document(events));
    for (std::size_t kept = 1; kept < events.size(); kept += 3) {
      SCOPED_TRACE(std::to_string(seed) + ", " + std::to_string(kept) + " events");
      const std::vector<TimedEvent> prefix(events.begin(),
                                           events.begin() + static_cast<std::ptrdiff_t>(kept));
      // Once as a document with its end, once as a file that just stops.
      std::string stopped = RandomTrace::Document(events);
      stopped.resize(stopped.find(events[kept].text));
      for (const ReplayResult& cut :
           {ReadDocument(RandomTrace::Document(prefix)), ReadDocument(stopped, true)}) {
        const std::vector<ReplayStep>& some = cut.traces.front().total.steps;
        const std::vector<ReplayStep>& all = whole.traces.front().total.steps;
        ASSERT_LE(some.size(), all.size());
        for (std::size_t i = 0; i < some.size(); ++i) {
          // The next step's begin is known, or this one has ended by itself.
          if (!IsOver(all[i], events[kept].start_us)) continue;
          ExpectSame(some[i], all[i]);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace flopledger
