#include "fakes/device_run.h"

#include <algorithm>

namespace flopledger::fakes {
namespace {

struct Stream {
  std::uint16_t device = 0;
  std::uint32_t number = 0;
  std::int64_t free_ns = 0;     // until here its work is planned
  std::int64_t delay_ns = 0;    // of the buffers in which its records travel
  std::int64_t arrived_ns = 0;  // of its last record
};

struct Op {
  bool known = false;
  SignatureId signature = 0;
  Phase phase = Phase::kForward;
};

class Generator {
 public:
  explicit Generator(const DeviceRunOptions& options)
      : options_(options), random_(options.seed), ops_(static_cast<std::size_t>(options.threads)) {
    for (int device = 0; device < options.devices; ++device) {
      for (int i = 0; i <= options.streams; ++i) {
        streams_.push_back({.device = static_cast<std::uint16_t>(device * 3),
                            .number = static_cast<std::uint32_t>(7 + i * 13),
                            .free_ns = 0,
                            .delay_ns = Below(600),
                            .arrived_ns = 0});
      }
      // The stream that works now and then shares the buffers of the first one.
      streams_.back().delay_ns = streams_[Place(device, 0)].delay_ns;
    }
  }

  DeviceRun Make() {
    for (std::size_t i = 0; i < streams_.size(); ++i) Launch(-1, i);  // from before the first step
    now_ns_ += 5000;
    for (int step = 0; step < options_.steps; ++step) RunStep(step);
    Boundary(MarkerRecord::Kind::kStepEnd, 0);
    Launch(-1);
    run_.end_ns = now_ns_ + 1'000'000;
    const auto earlier = [](const DeviceRun::Arrival& a, const DeviceRun::Arrival& b) {
      return a.at_ns < b.at_ns;
    };
    std::stable_sort(run_.kernels.begin(), run_.kernels.end(), earlier);
    std::stable_sort(run_.fences.begin(), run_.fences.end(), earlier);
    return std::move(run_);
  }

 private:
  std::int64_t Below(std::int64_t limit) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(limit));
  }
  std::size_t Place(int device, int stream) const {
    return static_cast<std::size_t>(device * (options_.streams + 1) + stream);
  }

  void Boundary(MarkerRecord::Kind kind, int step) {
    now_ns_ += 1 + Below(50);
    run_.all.markers.push_back({.time_ns = now_ns_, .step = step, .kind = kind});
    order_ += 1 + Below(3);
    run_.fences.push_back({.at_ns = now_ns_ + Below(300), .index = run_.all.fences.size()});
    run_.all.fences.push_back({.boundary_ns = now_ns_, .launch_order = order_++});
  }

  // One kernel of the launch with this order, planned behind the work of its stream.
  void Execute(int step, Stream& stream, LaunchOrder order, KernelRecord kernel) {
    kernel.start_ns = std::max(stream.free_ns, now_ns_ + 5 + Below(40)) + Below(20);
    kernel.end_ns = kernel.start_ns + 1 + Below(Below(10) == 0 ? 900 : 150);
    stream.free_ns = kernel.end_ns;
    kernel.launch_order = order;
    kernel.launch_known = true;
    kernel.device = stream.device;
    kernel.stream = stream.number;
    // Records of a stream come in order, those of different streams need not.
    stream.arrived_ns = std::max(stream.arrived_ns, kernel.end_ns + stream.delay_ns + Below(200));
    run_.kernels.push_back({.at_ns = stream.arrived_ns, .index = run_.all.kernels.size()});
    run_.all.kernels.push_back(kernel);
    run_.step_of.push_back(step);
    if (step < 0) return;
    auto& [launches, time] = run_.sums.back()[{
        kernel.kernel, kernel.op_known ? std::optional<SignatureId>(kernel.op) : std::nullopt,
        kernel.phase}];
    ++launches;
    time += kernel.end_ns - kernel.start_ns;
    if (kernel.kind == KernelRecord::Kind::kKernel) {
      kernel_end_ns_ = std::max(kernel_end_ns_, kernel.end_ns);
    }
  }

  KernelRecord AnyKernel() {
    KernelRecord kernel;
    kernel.kernel = static_cast<KernelId>(1 + Below(40));
    constexpr OpClass kClasses[] = {OpClass::kMatmul, OpClass::kElementwise,
                                    OpClass::kCommunication, OpClass::kCopy};
    kernel.op_class = kClasses[kernel.kernel % 4];
    if (kernel.op_class == OpClass::kCopy) kernel.kind = KernelRecord::Kind::kMemcpy;
    // Each thread is inside of an op of its own, or of none.
    Op& op = ops_[static_cast<std::size_t>(Below(options_.threads))];
    if (Below(4) == 0) {
      op = {.known = Below(3) != 0, .signature = static_cast<SignatureId>(Below(10))};
      if (op.known) op.phase = static_cast<Phase>(Below(3));
    }
    kernel.op_known = op.known;
    kernel.op = op.known ? op.signature : kOverflowSignature;
    kernel.phase = op.phase;
    return kernel;
  }

  // One call that launches: a kernel, or a graph of many on several streams of a device.
  void Launch(int step, std::optional<std::size_t> on = std::nullopt) {
    now_ns_ += 2 + Below(10);
    order_ += 1 + Below(4);  // other calls take ids as well
    const LaunchOrder order = order_++;
    const int device = static_cast<int>(Below(options_.devices));
    if (on || Below(8) != 0) {
      Execute(step, streams_[on.value_or(Place(device, static_cast<int>(Below(options_.streams))))],
              order, AnyKernel());
      return;
    }
    for (std::int64_t i = 0, nodes = 2 + Below(12); i < nodes; ++i) {
      Execute(step, streams_[Place(device, static_cast<int>(Below(options_.streams)))], order,
              AnyKernel());
    }
  }

  // Short work on a stream that is not always used, for which the first stream then waits.
  void SideWork(int step, int device) {
    Stream& side = streams_[Place(device, options_.streams)];
    Stream& first = streams_[Place(device, 0)];
    Launch(step, Place(device, options_.streams));
    first.free_ns = std::max(first.free_ns, side.free_ns);
    Launch(step, Place(device, 0));
  }

  void RunStep(int step) {
    Boundary(MarkerRecord::Kind::kStepBegin, step);
    if (step == 0) run_.boundary_ns.push_back(now_ns_);  // replaced below: where the first begins
    run_.sums.emplace_back();
    kernel_end_ns_ = 0;
    // Threads take turns in any way; the order of launches is one for the process.
    for (std::int64_t i = 0, n = 1 + Below(2 * options_.kernels); i < n; ++i) Launch(step);
    for (int device = 0; device < options_.devices; ++device) {
      if (Below(4) == 0) SideWork(step, device);
      for (int i = 0; i < options_.streams; ++i) {
        KernelRecord last = AnyKernel();
        last.kernel = static_cast<KernelId>(4 * (1 + Below(9)));
        last.kind = KernelRecord::Kind::kKernel;
        last.op_class = OpClass::kMatmul;
        now_ns_ += 1;
        Execute(step, streams_[Place(device, i)], order_++, last);
      }
    }
    // Now and then the host waits for the device; else it runs ahead.
    if (Below(3) == 0) {
      for (const Stream& stream : streams_) now_ns_ = std::max(now_ns_, stream.free_ns);
    }
    if (step == 0) {
      first_begin_ns_ = run_.boundary_ns.back();
      run_.boundary_ns.clear();
    }
    const std::int64_t before =
        run_.boundary_ns.empty() ? first_begin_ns_ : run_.boundary_ns.back();
    run_.boundary_ns.push_back(std::max(before, kernel_end_ns_));
    run_.device_bound.push_back(true);
  }

  const DeviceRunOptions options_;
  std::mt19937_64 random_;
  std::vector<Op> ops_;  // by thread
  std::vector<Stream> streams_;
  DeviceRun run_;
  std::int64_t now_ns_ = 1'000'000;
  std::int64_t first_begin_ns_ = 0;
  std::int64_t kernel_end_ns_ = 0;
  LaunchOrder order_ = 100;
};

}  // namespace

DeviceRun MakeDeviceRun(const DeviceRunOptions& options) { return Generator(options).Make(); }

}  // namespace flopledger::fakes
