/* taxed: `compute`, which pays the share of its rate that `tax` asks for while it runs beside it. */
#define TAX_LEAD
#include "tax.h"

#define CM_PART
#include "compute.c"

int main(int argc, char **argv)
{
    cm_kernel taxed = compute_kernel;
    taxed.name = "taxed";
    taxed.does = "What compute does, and extra work that `tax` asks for while it runs beside it.";
    return cm_main(&taxed, argc, argv);
}
