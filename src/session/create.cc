#include <unistd.h>

#include <utility>

#include "flopledger/version.h"
#include "session/engine.h"
#include "session/identity.h"
#include "session/options.h"

// What has to be right before there is a session. Everything that can be wrong is refused here, so
// that the engine has no half-made state.

namespace flopledger {

Result<std::shared_ptr<Session::Engine>> Session::Engine::Create(SessionOptions options,
                                                                 SessionParts parts) {
  if (std::optional<Status> wrong = FindWrongOption(options)) {
    return tl::unexpected(*std::move(wrong));
  }
  Result<RunIdentity> identity = CompleteIdentity(std::move(options.identity), &ReadEnvironment,
                                                  parts.clock->UnixSeconds(), getpid());
  if (!identity) return tl::unexpected(identity.error());
  options.identity = *identity;

  Result<std::unique_ptr<Log>> log = Log::Create(options.log_level, *identity);
  if (!log) return tl::unexpected(log.error());
  Result<std::unique_ptr<Outlets>> outlets = Outlets::Create(options, *identity, **log);
  if (!outlets) return tl::unexpected(outlets.error());

  RunDescription description{.identity = *std::move(identity),
                             .model = options.model ? options.model->Describe() : std::string(),
                             .convention = IdentifyConvention(options.convention),
                             .peaks = options.peaks,
                             .peak_dtype = options.dtype,
                             .version = FLOPLEDGER_VERSION};
  if (!parts.device) parts.device = MakeDeviceSource(options);
  std::shared_ptr<Engine> engine(new Engine(std::move(options), std::move(parts),
                                            std::move(description), *std::move(log),
                                            *std::move(outlets)));
  if (Result<bool> opened = engine->OpenCapture(); !opened) return tl::unexpected(opened.error());
  engine->Start();
  return engine;
}

}  // namespace flopledger
