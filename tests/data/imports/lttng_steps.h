#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER job
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_steps.h"
#if !defined(_LTTNG_STEPS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define _LTTNG_STEPS_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(job, step_begin, LTTNG_UST_TP_ARGS(int, n), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, n)))
LTTNG_UST_TRACEPOINT_EVENT(job, step_end, LTTNG_UST_TP_ARGS(int, n), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, number, n)))
LTTNG_UST_TRACEPOINT_EVENT(job, note, LTTNG_UST_TP_ARGS(const char *, text, double, x), LTTNG_UST_TP_FIELDS(lttng_ust_field_string(text, text) lttng_ust_field_float(double, x, x)))
#endif
#include <lttng/tracepoint-event.h>
