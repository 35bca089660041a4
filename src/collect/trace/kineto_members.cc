#include <algorithm>

#include "collect/trace/kineto_decoder.h"
#include "collect/trace/time_text.h"

// What stands beside the events: devices, rank, the origin of the times.

namespace flopledger {
namespace {

/// Calls `take(key, value token)` for each member of the object at token `*i`, and moves it behind.
template <typename Take>
bool ForEachMember(JsonTokens& tokens, std::size_t* i, Take take) {
  if (tokens.at(*i) != '{') return false;
  ++*i;
  if (tokens.at(*i) == '}') {
    ++*i;
    return true;
  }
  for (bool more = true; more;) {
    std::string_view key;
    if (tokens.TakeKey(i, &key) != JsonTokens::Verdict::kOk) return false;
    take(key, *i);
    if (tokens.SkipValue(i) != JsonTokens::Verdict::kOk ||
        tokens.TakeSeparator(i, '}', &more) != JsonTokens::Verdict::kOk) {
      return false;
    }
  }
  return true;
}

void AppendUtf8(unsigned code, std::string& text) {
  const auto byte = [&text](unsigned value) { text += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
    byte(0x80 | (code & 0x3f));
  }
}

std::optional<unsigned> HexAt(std::string_view text, std::size_t i) {
  if (i + 4 > text.size()) return std::nullopt;
  unsigned value = 0;
  for (const char letter : text.substr(i, 4)) {
    const char lower = static_cast<char>(letter | 0x20);
    if (letter >= '0' && letter <= '9') {
      value = value * 16 + static_cast<unsigned>(letter - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<unsigned>(lower - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

std::string Unescaped(std::string_view content) {
  if (content.find('\\') == content.npos) return std::string(content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] != '\\' || i + 1 == content.size()) {
      text += content[i];
      continue;
    }
    const char letter = content[++i];
    constexpr std::string_view kLetters = "bfnrt";
    constexpr std::string_view kControls = "\b\f\n\r\t";
    if (const std::size_t known = kLetters.find(letter); known != kLetters.npos) {
      text += kControls[known];
    } else if (letter == 'u') {
      std::optional<unsigned> code = HexAt(content, i + 1);
      if (!code) {
        text += "\\u";
        continue;
      }
      i += 4;
      // A character beyond 16 bits is written as two halves.
      if (*code >= 0xd800 && *code < 0xdc00 && content.substr(i + 1, 2) == "\\u") {
        if (const auto low = HexAt(content, i + 3); low && *low >= 0xdc00 && *low < 0xe000) {
          code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
          i += 6;
        }
      }
      AppendUtf8(*code >= 0xd800 && *code < 0xe000 ? 0xfffd : *code, text);
    } else if (letter == '"' || letter == '\\' || letter == '/') {
      text += letter;
    } else {
      text += '\\';
      text += letter;
    }
  }
  return text;
}

void KinetoDecoder::ReadDevices(std::size_t i) {
  if (tokens_->at(i) != '[' || tokens_->at(i + 1) == ']') return;
  ++i;
  constexpr std::size_t kMostDevices = 1024;
  for (bool more = true; more && devices_.size() < kMostDevices;) {
    DeviceDescription device;
    const bool read = ForEachMember(*tokens_, &i, [&](std::string_view key, std::size_t value) {
      const auto number = [&] { return std::clamp<std::int64_t>(IntegerOr(value, 0), 0, 1 << 30); };
      if (key == "id") device.device = static_cast<std::uint16_t>(number());
      if (key == "name") device.name = Unescaped(Text(value));
      if (key == "computeMajor") device.compute_capability_major = static_cast<int>(number());
      if (key == "computeMinor") device.compute_capability_minor = static_cast<int>(number());
      if (key == "numSms") device.multiprocessors = static_cast<int>(number());
      if (key == "totalGlobalMem") device.memory_bytes = IntegerOr(value, 0);
    });
    if (!read) return;
    devices_.push_back(std::move(device));
    if (tokens_->TakeSeparator(&i, ']', &more) != JsonTokens::Verdict::kOk) return;
  }
}

void KinetoDecoder::ReadDistributed(std::size_t i) {
  ForEachMember(*tokens_, &i, [&](std::string_view key, std::size_t value) {
    const std::int64_t number = IntegerOr(value, -1);
    if (number < 0 || number > 1 << 30) return;
    if (key == "rank") rank_ = static_cast<int>(number);
    if (key == "world_size") world_size_ = static_cast<int>(number);
  });
}

void KinetoDecoder::OnMember(JsonTokens& tokens, std::string_view key, std::size_t i) {
  tokens_ = &tokens;
  if (key == "deviceProperties") ReadDevices(i);
  if (key == "distributedInfo") ReadDistributed(i);
  if (key == "baseTimeNanoseconds") records_.base_ns = ParseInteger(Text(i));
}

}  // namespace flopledger
