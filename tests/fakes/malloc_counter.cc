// Counts the heap calls of each thread; to be preloaded. For the test that the native observer adds
// none to what torch itself does for an observed op.

#include <cstddef>

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

// The initial-exec model: reading the counter must not allocate.
static __thread unsigned long t_calls __attribute__((tls_model("initial-exec")));

#define FLOPLEDGER_TEST_EXPORT __attribute__((visibility("default")))

FLOPLEDGER_TEST_EXPORT unsigned long malloc_counter_calls() { return t_calls; }

FLOPLEDGER_TEST_EXPORT void* malloc(std::size_t size) {
  ++t_calls;
  return __libc_malloc(size);
}
FLOPLEDGER_TEST_EXPORT void* calloc(std::size_t count, std::size_t size) {
  ++t_calls;
  return __libc_calloc(count, size);
}
FLOPLEDGER_TEST_EXPORT void* realloc(void* memory, std::size_t size) {
  ++t_calls;
  return __libc_realloc(memory, size);
}
FLOPLEDGER_TEST_EXPORT void* memalign(std::size_t alignment, std::size_t size) {
  ++t_calls;
  return __libc_memalign(alignment, size);
}
FLOPLEDGER_TEST_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++t_calls;
  return __libc_memalign(alignment, size);
}
FLOPLEDGER_TEST_EXPORT int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  ++t_calls;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? 12 : 0;  // ENOMEM
}

}  // extern "C"
