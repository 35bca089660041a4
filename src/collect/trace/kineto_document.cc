#include "collect/trace/kineto_document.h"

namespace flopledger {
namespace {

using Verdict = JsonTokens::Verdict;

KinetoField FieldOf(std::string_view key) {
  switch (key.size()) {
    case 2:
      if (key == "ph") return KinetoField::kPh;
      if (key == "ts") return KinetoField::kTs;
      break;
    case 3:
      if (key == "cat") return KinetoField::kCat;
      if (key == "pid") return KinetoField::kPid;
      if (key == "tid") return KinetoField::kTid;
      if (key == "dur") return KinetoField::kDur;
      break;
    case 4:
      if (key == "name") return KinetoField::kName;
      if (key == "args") return KinetoField::kArgs;
      break;
    default:
      break;
  }
  return KinetoField::kOther;
}

KinetoField ArgumentOf(std::string_view key) {
  switch (key.size()) {
    case 4:
      return key == "grid" ? KinetoField::kGrid : KinetoField::kOther;
    case 5:
      return key == "block" ? KinetoField::kBlock : KinetoField::kOther;
    case 6:
      if (key == "stream") return KinetoField::kStream;
      if (key == "device") return KinetoField::kDevice;
      if (key == "Ev Idx") return KinetoField::kEventIndex;
      break;
    case 10:
      if (key == "Input Dims" || key == "Input dims") return KinetoField::kInputDims;
      if (key == "Input type") return KinetoField::kInputType;
      break;
    case 11:
      if (key == "correlation") return KinetoField::kCorrelation;
      if (key == "External id" || key == "external id") return KinetoField::kExternalId;
      if (key == "Input types" || key == "Input Types") return KinetoField::kInputType;
      break;
    case 13:
      if (key == "shared memory") return KinetoField::kSharedMemory;
      if (key == "Fwd thread id") return KinetoField::kForwardThread;
      break;
    case 15:
      if (key == "Concrete Inputs") return KinetoField::kConcreteInputs;
      if (key == "Sequence number") return KinetoField::kSequenceNumber;
      break;
    case 20:
      return key == "Profiler Event Index" ? KinetoField::kEventIndex : KinetoField::kOther;
    default:
      break;
  }
  return KinetoField::kOther;
}

}  // namespace

Verdict KinetoDocument::Bad(std::size_t i, std::string_view what) {
  fault_ = {window_.tokens().offset(i), what};
  return Verdict::kBad;
}

Verdict KinetoDocument::ReadArguments(std::size_t* i) {
  JsonTokens& tokens = window_.tokens();
  ++*i;
  if (tokens.at(*i) == '}') {
    ++*i;
    return Verdict::kOk;
  }
  for (bool more = true; more;) {
    std::string_view key;
    Verdict verdict = tokens.TakeKey(i, &key);
    if (verdict != Verdict::kOk) return verdict;
    const KinetoField field = ArgumentOf(key);
    if (field != KinetoField::kOther) event_.Set(field, *i);
    verdict = tokens.SkipValue(i);
    if (verdict != Verdict::kOk) return verdict;
    verdict = tokens.TakeSeparator(i, '}', &more);
    if (verdict != Verdict::kOk) return verdict;
  }
  return Verdict::kOk;
}

Verdict KinetoDocument::ReadEvent(std::size_t* i) {
  JsonTokens& tokens = window_.tokens();
  event_.Clear();
  if (tokens.at(*i) != '{') return tokens.SkipValue(i);  // allowed, and no event
  ++*i;
  if (tokens.at(*i) == '}') {
    ++*i;
    return Verdict::kOk;
  }
  for (bool more = true; more;) {
    std::string_view key;
    Verdict verdict = tokens.TakeKey(i, &key);
    if (verdict != Verdict::kOk) return verdict;
    const KinetoField field = FieldOf(key);
    const bool nested = tokens.at(*i) == '{' || tokens.at(*i) == '[';
    if (field == KinetoField::kArgs && tokens.at(*i) == '{') {
      event_.Set(field, *i);
      verdict = ReadArguments(i);
    } else {
      if (field != KinetoField::kOther && !nested) event_.Set(field, *i);
      verdict = tokens.SkipValue(i);
    }
    if (verdict != Verdict::kOk) return verdict;
    verdict = tokens.TakeSeparator(i, '}', &more);
    if (verdict != Verdict::kOk) return verdict;
  }
  return Verdict::kOk;
}

Verdict KinetoDocument::TakeItemEnd(std::size_t* i, char close) {
  bool more = false;
  const Verdict verdict = window_.tokens().TakeSeparator(i, close, &more);
  if (verdict == Verdict::kOk && !more) {
    if (state_ == State::kEvents && in_object_) {
      state_ = State::kMembers;
      first_item_ = false;
    } else {
      state_ = State::kEnd;
    }
  }
  return verdict;
}

Verdict KinetoDocument::TakeStart(std::size_t* i) {
  const char first = window_.tokens().at(*i);
  if (first != '{' && first != '[') return Bad(*i, "no JSON object or array");
  ++*i;
  in_object_ = first == '{';
  has_events_ = !in_object_;
  state_ = in_object_ ? State::kMembers : State::kEvents;
  return Verdict::kOk;
}

Verdict KinetoDocument::TakeMember(KinetoConsumer& consumer, std::size_t* i) {
  JsonTokens& tokens = window_.tokens();
  if (!first_item_) {
    bool more = false;
    const Verdict verdict = tokens.TakeSeparator(i, '}', &more);
    if (verdict != Verdict::kOk) return verdict;
    if (!more) {
      state_ = State::kEnd;
      return Verdict::kOk;
    }
  } else if (tokens.at(*i) == '}') {
    ++*i;
    state_ = State::kEnd;
    return Verdict::kOk;
  }
  std::string_view key;
  Verdict verdict = tokens.TakeKey(i, &key);
  if (verdict != Verdict::kOk) return verdict;
  if (key == "traceEvents" && tokens.at(*i) == '[') {
    ++*i;
    has_events_ = true;
    state_ = State::kEvents;
    first_item_ = true;
    return Verdict::kOk;
  }
  const std::size_t value = *i;
  verdict = tokens.SkipValue(i);
  if (verdict != Verdict::kOk) return verdict;
  // A number or literal at the end of the window may go on behind it.
  if (*i >= tokens.size() && !window_.at_end()) return Verdict::kMore;
  consumer.OnMember(tokens, key, value);
  first_item_ = false;
  return Verdict::kOk;
}

Verdict KinetoDocument::TakeEvent(KinetoConsumer& consumer, std::size_t* i) {
  JsonTokens& tokens = window_.tokens();
  if (!first_item_) {
    const Verdict verdict = TakeItemEnd(i, ']');
    if (verdict != Verdict::kOk || state_ != State::kEvents) return verdict;
  } else if (tokens.at(*i) == ']') {
    return TakeItemEnd(i, ']');
  }
  const Verdict verdict = ReadEvent(i);
  if (verdict != Verdict::kOk) return verdict;
  ++events_;
  first_item_ = false;
  if (event_.has(KinetoField::kPh)) consumer.OnEvent(tokens, event_);
  return Verdict::kOk;
}

Verdict KinetoDocument::TakeItems(KinetoConsumer& consumer, std::size_t* taken) {
  JsonTokens& tokens = window_.tokens();
  *taken = tokens.size() == 0 ? window_.size() : 0;
  for (std::size_t i = 0; i < tokens.size();) {
    Verdict verdict = Verdict::kOk;
    const State state = state_;
    const bool first_item = first_item_;
    fault_.what = {};
    switch (state_) {
      case State::kStart:
        verdict = TakeStart(&i);
        break;
      case State::kMembers:
        verdict = TakeMember(consumer, &i);
        break;
      case State::kEvents:
        verdict = TakeEvent(consumer, &i);
        break;
      case State::kEnd:
        verdict = Bad(i, "text after the end of the document");
        break;
    }
    if (verdict != Verdict::kOk) {
      state_ = state;
      first_item_ = first_item;
      if (verdict == Verdict::kBad && fault_.what.empty()) fault_ = tokens.fault();
      return verdict;
    }
    *taken = i < tokens.size() ? tokens.offset(i) : window_.size();
  }
  return Verdict::kOk;
}

std::size_t KinetoDocument::Resynchronise(std::size_t offset) {
  ++lost_.events;
  const JsonTokens& tokens = window_.tokens();
  std::size_t i = 0;
  while (i < tokens.size() && tokens.offset(i) <= offset) ++i;
  for (; i < tokens.size(); ++i) {
    if (tokens.at(i) == '{' && i > 0 && tokens.at(i - 1) == ',' && tokens.at(i + 1) == '"') {
      state_ = State::kEvents;
      first_item_ = true;
      return tokens.offset(i);
    }
  }
  return window_.size();
}

Result<bool> KinetoDocument::Refuse(std::size_t offset, std::string_view what) const {
  const std::uint64_t position = window_.base() + offset;
  return Fail(StatusCode::kDataLoss,
              window_.text().path() + ": byte " + std::to_string(position) + ", line " +
                  std::to_string(window_.text().LineOf(position)) + ": " + std::string(what) +
                  ", near `" + window_.Excerpt(offset) + "`; --lenient reads what can be read");
}

Result<bool> KinetoDocument::AtEndOfText(std::size_t taken) {
  if (state_ == State::kEnd) return true;
  const JsonTokens& tokens = window_.tokens();
  bool inside = window_.open_string();
  for (std::size_t i = tokens.size(); i > 0 && tokens.offset(i - 1) >= taken; --i) {
    inside = inside || tokens.at(i - 1) != ',';
  }
  if (!lenient_) {
    if (inside) return Refuse(window_.filled(), "the text ends inside of a value");
    return Refuse(window_.filled(), state_ == State::kStart
                                        ? "the text is empty"
                                        : "the text ends before its array or object is closed");
  }
  lost_.cut = lost_.cut || inside;
  lost_.unterminated = !lost_.cut;
  return true;
}

Result<bool> KinetoDocument::ReadAll(KinetoConsumer& consumer) {
  std::size_t taken = 0;
  while (true) {
    const Result<bool> more = window_.Advance(taken);
    if (!more.has_value()) return more;
    if (!*more) return AtEndOfText(0);
    if (window_.base() == 0 && !byte_order_mark_ && window_.StartsWith("\xef\xbb\xbf")) {
      byte_order_mark_ = true;
      taken = 3;
      continue;
    }
    if (window_.failed()) return Refuse(window_.fault().offset, window_.fault().what);
    const Verdict verdict = TakeItems(consumer, &taken);
    text_bytes_ = window_.base() + window_.size();
    if (verdict == Verdict::kBad) {
      if (!lenient_) return Refuse(fault_.offset, fault_.what);
      if (state_ == State::kEnd || state_ == State::kStart) return AtEndOfText(taken);
      taken = Resynchronise(fault_.offset);
      if (taken >= window_.size() && window_.at_end()) return AtEndOfText(taken);
      continue;
    }
    if (window_.at_end()) return AtEndOfText(taken);
  }
}

}  // namespace flopledger
