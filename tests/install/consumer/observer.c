/* An observer may be C: the header of its table has to be C, too. */
#include <flopledger/host_ops.h>

unsigned int observer_table_size(void) { return (unsigned int)sizeof(flopledger_host_ops); }
