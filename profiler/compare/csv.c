/* One line a variant, operation and size. */
#include <stdio.h>

#include "profiler/compare/gv_compare.h"

void gv_compared_csv(const struct gv_compared *c, FILE *out)
{
    fputs(
        "variant,operation,size,type,redop,in_place,time,alg_bw,bus_bw,bus_bw_low,bus_bw_high,"
        "count,first_time,nwrong,gain,gain_low,gain_high,verdict\n",
        out);
    for (int s = 0; s < c->run.nsteers; s++)
        for (int k = 0; k < c->run.ncases; k++) {
            const struct gv_case *w = &c->run.cases[k];
            const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
            struct gv_compared_side side = gv_compared_side_of(c, s, k);
            const struct gv_compared_row *row = NULL;
            for (int i = 0; i < c->nrows; i++)
                if (c->rows[i].other == s && c->rows[i].k == k)
                    row = &c->rows[i];
            fprintf(
                out, "%s,%s,%llu,%s,%s,%d,%.3f,%.4f,%.4f,%.4f,%.4f,%d,%.1f,%llu",
                c->run.steer[s].name, gv_op_name(w->op), (unsigned long long)w->bytes,
                gv_type_name(w->type), gv_op_reduces(w->op) ? gv_redop_name(w->redop) : "none",
                w->in_place, side.time_us, side.algbw_gbs, side.busbw_gbs, side.busbw.low,
                side.busbw.high, side.busbw.count, side.first_us, (unsigned long long)cell->wrong);
            if (row)
                fprintf(
                    out, ",%.5f,%.5f,%.5f,%s\n", row->gain, row->interval.low, row->interval.high,
                    gv_judgement(row->verdict));
            else
                fputs(",,,,\n", out);
        }
}
