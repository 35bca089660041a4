#pragma once

#include <memory>
#include <string>

#include "collect/trace/kineto_link.h"
#include "collect/trace/text_part.h"
#include "collect/trace/trace_source.h"

namespace flopledger {

/// One process of a PyTorch Kineto trace. The first `Read` reads all of its text: events come in
/// any order, so the first record is known when the last event is.
///
/// Memory: 24 to 64 bytes an op, call or piece of device work, whatever else the file holds.
class KinetoSource : public TraceSource {
 public:
  KinetoSource(TextPart text, std::string name, const TraceOptions& options);

  Result<bool> Read(RecordBatch& batch) override;

 private:
  Result<bool> Load();
  void Describe(const class KinetoDocument& document, const class KinetoDecoder& decoder);
  void WarnOfText(const class KinetoDocument& document);
  void WarnOfEvents(const class KinetoDecoder& decoder);
  void WarnOfLinks(const KinetoLinkCounts& counts);

  const TraceOptions options_;
  TextPart text_;
  std::unique_ptr<KinetoLinker> linker_;
};

}  // namespace flopledger
