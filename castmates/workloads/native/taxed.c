/* taxed: `compute`, which pays the share of its rate that `tax` asks for while it runs beside it. */
#define TAX_LEAD
#include "tax.h"

#include "compute.c"
