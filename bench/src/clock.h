/* Put in front of roofline.c by `gcc -include`, so that its source stays as it is: each
 * time it looks at the clock, user CPU time and most memory so far go to standard error. With
 * `-P`, the fourth look is the start of the run and the last one its end. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

static int look_at_clock(clockid_t clock, struct timespec *t) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    fprintf(stderr, "user_s=%ld.%06ld rss_max_kib=%ld\n", (long)u.ru_utime.tv_sec,
            (long)u.ru_utime.tv_usec, u.ru_maxrss);
    return clock_gettime(clock, t);
}
#define clock_gettime look_at_clock
