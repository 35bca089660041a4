#pragma once

#include <memory>

#include "base/clock.h"
#include "collect/device_source.h"
#include "flopledger/session.h"

namespace flopledger {

/// What a session is made of besides its options. `Session::Create` takes the machine's own parts;
/// tests give others.
///
///     auto session = SessionParts{.clock = ..., .device = std::move(fake)}.Create(options);
struct SessionParts {
  std::unique_ptr<Clock> clock;
  std::unique_ptr<DeviceSource> device;  ///< null: device work is not recorded

  Result<std::unique_ptr<Session>> Create(SessionOptions options) &&;
};

}  // namespace flopledger
