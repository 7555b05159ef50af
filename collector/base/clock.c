#include "collector/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t now_us(clockid_t id)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return now_us(CLOCK_REALTIME);
}

int64_t clock_mono_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
    return clock_mono_us() / 1000;
}

int clock_left_ms(int64_t deadline_ms)
{
    int64_t left = deadline_ms - clock_mono_ms();

    if (left <= 0) {
        return 0;
    }
    return left > INT32_MAX ? INT32_MAX : (int)left;
}

/* Days since 1970-01-01 of a date in the Gregorian calendar (after H. Hinnant). */
static int64_t days_from_civil(int64_t y, int64_t m, int64_t d)
{
    y -= m <= 2;

    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

/* Write n as `width` decimal digits. */
static char *put(char *at, int64_t n, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + n % 10);
        n /= 10;
    }
    return at + width;
}

/* The inverse of days_from_civil(), written as YYYY-MM-DD. */
static char *put_date(char *at, int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = z / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int64_t month = mp < 10 ? mp + 3 : mp - 9;

    at = put(at, yoe + era * 400 + (month <= 2), 4);
    *at++ = '-';
    at = put(at, month, 2);
    *at++ = '-';
    return put(at, doy - (153 * mp + 2) / 5 + 1, 2);
}

void clock_format(int64_t us, char ret_text[CLOCK_TEXT_SIZE])
{
    static const int64_t last_us = 253402300799999999; /* 9999-12-31T23:59:59.999999Z */
    char *at = ret_text;

    us = us < 0 ? 0 : us;
    us = us > last_us ? last_us : us;
    at = put_date(at, us / CLOCK_DAY_US);
    us %= CLOCK_DAY_US;
    *at++ = 'T';
    at = put(at, us / 3600000000, 2);
    *at++ = ':';
    at = put(at, us / 60000000 % 60, 2);
    *at++ = ':';
    at = put(at, us / 1000000 % 60, 2);
    *at++ = '.';
    at = put(at, us % 1000000, 6);
    *at++ = 'Z';
    *at = '\0';
}

/* `width` digits at the start of *s, then `sep` (0: none), both taken off. */
static bool take(struct slice *s, size_t width, char sep, int64_t *ret)
{
    int64_t value = 0;

    if (s->len < width + (sep ? 1 : 0)) {
        return false;
    }
    for (size_t i = 0; i < width; i++) {
        if (s->ptr[i] < '0' || s->ptr[i] > '9') {
            return false;
        }
        value = value * 10 + (s->ptr[i] - '0');
    }
    if (sep && s->ptr[width] != sep) {
        return false;
    }
    width += sep ? 1 : 0;
    s->ptr += width;
    s->len -= width;
    *ret = value;
    return true;
}

/* The fraction ".123" at the start of *s, in microseconds; 0 without one. */
static bool take_fraction(struct slice *s, int64_t *ret_us)
{
    int64_t us = 0;
    int64_t weight = 100000;
    size_t i = 1;

    *ret_us = 0;
    if (s->len == 0 || s->ptr[0] != '.') {
        return true;
    }
    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++) {
        us += weight * (s->ptr[i] - '0');
        weight /= 10;
    }
    s->ptr += i;
    s->len -= i;
    *ret_us = us;
    return i > 1;
}

/* "Z" or "+hh:mm" and nothing after it, in seconds east of UTC. */
static bool take_offset(struct slice s, int64_t *ret_s)
{
    int64_t hours;
    int64_t minutes;

    if (s.len == 1 && (s.ptr[0] == 'Z' || s.ptr[0] == 'z')) {
        *ret_s = 0;
        return true;
    }
    if (s.len != 6 || (s.ptr[0] != '+' && s.ptr[0] != '-')) {
        return false;
    }

    int64_t sign = s.ptr[0] == '-' ? -1 : 1;

    s.ptr++;
    s.len--;
    if (!take(&s, 2, ':', &hours) || !take(&s, 2, 0, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool is_date(int64_t year, int64_t month, int64_t day)
{
    static const int64_t lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    if (month < 1 || month > 12 || day < 1) {
        return false;
    }
    return day <= lengths[month - 1] + (month == 2 && leap ? 1 : 0);
}

bool clock_parse(struct slice text, int64_t *ret_us)
{
    int64_t year;
    int64_t month;
    int64_t day;
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t fraction_us;
    int64_t offset_s;

    if (!take(&text, 4, '-', &year) || !take(&text, 2, '-', &month) || !take(&text, 2, 0, &day) ||
        !is_date(year, month, day)) {
        return false;
    }
    if (text.len == 0 || (text.ptr[0] != 'T' && text.ptr[0] != 't' && text.ptr[0] != ' ')) {
        return false;
    }
    text.ptr++;
    text.len--;
    if (!take(&text, 2, ':', &hour) || !take(&text, 2, ':', &minute) ||
        !take(&text, 2, 0, &second) || hour > 23 || minute > 59 || second > 60 ||
        !take_fraction(&text, &fraction_us) || !take_offset(text, &offset_s)) {
        return false;
    }

    int64_t s = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;

    *ret_us = (s - offset_s) * 1000000 + fraction_us;
    return true;
}
