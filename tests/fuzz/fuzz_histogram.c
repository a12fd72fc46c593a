/* Which collectives a job calls, as a table or from a log: rows are in order and each there once;
 * written as a table they are read back equal. */
#include <math.h>

#include "base/gv_size.h"
#include "base/gv_str.h"
#include "profiler/compare/gv_histogram.h"
#include "tests/fuzz/fuzz.h"

static void again(const struct gv_histogram *h)
{
    struct gv_histogram read;
    struct gv_str table = {0};
    struct gv_error err = {0};
    for (int i = 0; i < h->n; i++)
        gv_str_addf(
            &table, "%llu %s %.17g\n", (unsigned long long)h->rows[i].bytes,
            gv_op_name(h->rows[i].op), h->rows[i].calls);
    GV_MUST(!gv_histogram_read(gv_fuzz_file((const uint8_t *)table.data, table.len), &read, &err));
    GV_MUST(read.n == h->n && !read.from_log);
    for (int i = 0; i < h->n; i++) {
        const struct gv_histogram_row *a = &h->rows[i], *b = &read.rows[i];
        GV_MUST(a->op == b->op && a->bytes == b->bytes && a->calls == b->calls);
    }
    gv_histogram_finish(&read);
    gv_str_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_histogram h;
    struct gv_error err = {0};
    bool writable = true;
    if (gv_histogram_read(gv_fuzz_file(data, size), &h, &err)) {
        GV_MUST(err.text[0] && !h.rows && !h.n);
        return 0;
    }
    GV_MUST(h.n > 0);
    for (int i = 0; i < h.n; i++) {
        const struct gv_histogram_row *r = &h.rows[i], *last = i ? r - 1 : NULL;
        GV_MUST(r->op < GV_OP_COUNT && r->bytes > 0 && r->calls > 0 && isfinite(r->calls));
        GV_MUST(!last || r->op > last->op || (r->op == last->op && r->bytes > last->bytes));
        /* more than a line may say */
        writable = writable && r->calls <= 1e15 && r->bytes < 1ull << 62;
    }
    if (writable)
        again(&h);
    gv_histogram_finish(&h);
    return 0;
}
