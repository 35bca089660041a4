#pragma once

/// Marks what `libflopledger.so` lets out; everything else is hidden.
#define FLOPLEDGER_EXPORT __attribute__((visibility("default")))
