#include "collector/sql/histogram.h"

const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS] = {
    100,    1000,   2000,    5000,    10000,   20000,    50000,    100000,
    200000, 500000, 1000000, 2000000, 5000000, 10000000, 30000000, INT64_MAX,
};

const char *const histogram_columns[HISTOGRAM_BUCKETS] = {
    "d_100us", "d_1ms",   "d_2ms", "d_5ms", "d_10ms", "d_20ms", "d_50ms", "d_100ms",
    "d_200ms", "d_500ms", "d_1s",  "d_2s",  "d_5s",   "d_10s",  "d_30s",  "d_more",
};

size_t histogram_bucket(int64_t duration_us)
{
    size_t i = 0;

    while (duration_us > histogram_bounds_us[i]) {
        i++;
    }
    return i;
}
