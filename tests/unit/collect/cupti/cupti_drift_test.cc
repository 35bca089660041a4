// The real library walks the double's buffers: what the double writes is what the real one writes.
// cuptiActivityGetNextRecord of 13.0.85 works without a driver.

#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "fakes/fake_cupti/fake_cupti_script.h"

namespace {

using NextRecord = CUptiResult (*)(std::uint8_t*, std::size_t, CUpti_Activity**);
// Kind, and distance from the buffer's begin.
using Walk = std::vector<std::pair<int, std::ptrdiff_t>>;

std::vector<std::vector<std::uint8_t>> buffers;

void Request(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  *size = 65536;
  *buffer = static_cast<std::uint8_t*>(std::calloc(1, *size));
  *max_records = 0;
}
void Complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  buffers.emplace_back(buffer, buffer + valid);
  std::free(buffer);
}

Walk WalkWith(NextRecord next, std::vector<std::uint8_t>& buffer, CUptiResult* end) {
  Walk walk;
  CUpti_Activity* record = nullptr;
  for (;;) {
    *end = next(buffer.data(), buffer.size(), &record);
    if (*end != CUPTI_SUCCESS) return walk;
    walk.emplace_back(static_cast<int>(record->kind),
                      reinterpret_cast<std::uint8_t*>(record) - buffer.data());
  }
}

NextRecord RealNextRecord() {
  void* library = dlopen(FLOPLEDGER_TEST_CUPTI_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<NextRecord>(dlsym(library, "cuptiActivityGetNextRecord"));
}

TEST(CuptiDriftTest, TheRealLibraryWalksTheDoublesBuffers) {
  if (CUPTI_API_VERSION != 130001) {
    GTEST_SKIP() << "pinned to libcupti 13.0.85 (API version 130001), headers have "
                 << CUPTI_API_VERSION;
  }
  if (!std::filesystem::exists(FLOPLEDGER_TEST_CUPTI_LIBRARY)) {
    GTEST_SKIP() << "no libcupti beside the headers";
  }
  const NextRecord real = RealNextRecord();
  ASSERT_NE(real, nullptr) << dlerror();
  ASSERT_NE(real, &cuptiActivityGetNextRecord) << "two libraries";

  fakecupti_reset();
  buffers.clear();
  ASSERT_EQ(cuptiActivityRegisterCallbacks(&Request, &Complete), CUPTI_SUCCESS);
  for (CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}) {
    ASSERT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
  }
  cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 1);
  std::size_t expected = 0;
  for (std::uint32_t i = 0; i < 300; ++i) {
    cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, i);
    const fakecupti_kernel kernel{
        .name = "k", .start = 1 + i, .end = 2 + i, .correlation = fakecupti_launch()};
    cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, nullptr);
    fakecupti_add_kernel(&kernel);
    fakecupti_add_memcpy(1, 2, 0, 1, i, 1, static_cast<int>(i % 2));
    fakecupti_add_memset(1, 2, 0, 1, i);
    fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, 1, 2);
    fakecupti_add_marker();
    expected += 7;  // the launch is two: its external id, and the call
  }
  ASSERT_EQ(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
  ASSERT_GT(buffers.size(), 1u);
  std::size_t records = 0;
  for (std::vector<std::uint8_t>& buffer : buffers) {
    CUptiResult real_end = CUPTI_SUCCESS;
    CUptiResult double_end = CUPTI_SUCCESS;
    const Walk by_real = WalkWith(real, buffer, &real_end);
    const Walk by_double = WalkWith(&cuptiActivityGetNextRecord, buffer, &double_end);
    EXPECT_EQ(by_real, by_double);
    EXPECT_EQ(real_end, CUPTI_ERROR_MAX_LIMIT_REACHED);
    EXPECT_EQ(double_end, CUPTI_ERROR_MAX_LIMIT_REACHED);
    records += by_real.size();
  }
  EXPECT_EQ(records, expected);
  fakecupti_reset();
}

}  // namespace
