#pragma once

#include <cstdint>

// Of nvtx_module.cc, built as two libraries.
extern "C" {
void module_a_push(const char* name);
void module_a_pop();
void module_a_tokens(std::int64_t useful);
void module_b_push(const char* name);
void module_b_pop();
void module_b_tokens(std::int64_t useful);
}
