#include "flopledger/convention.h"
