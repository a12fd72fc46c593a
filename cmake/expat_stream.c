/* The stream to which expat writes when EXPAT_ACCOUNTING_DEBUG or EXPAT_ENTITY_DEBUG is set: see
 * deps.cmake. */
#include <stdio.h>

extern FILE *gv_expat_stream;
FILE *gv_expat_stream;

__attribute__((constructor)) static void set_stream(void)
{
    gv_expat_stream = stderr;
}
