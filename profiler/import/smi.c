/* nvidia-smi topo -m and topo -p2p: a heading that names the columns, one row for each GPU. The two
 * are told apart by their cells. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/import.h"

enum kind { KIND_NONE, KIND_CLASS, KIND_P2P };

struct matrix {
    unsigned line; /* of the heading */
    int columns, gpus;
    bool has_affinity, has_numa;
    enum kind kind;
    char capability; /* of topo -p2p: r, w, n, a, p; 0 not known */
    char cell[GV_MAX_GPUS][GV_MAX_GPUS][8];
    int numa[GV_MAX_GPUS];
    unsigned row_line[GV_MAX_GPUS];
};

/* A NIC, under whatever name the kernel gave it: "NIC0", "mlx5_0", "irdma0", "rocep1s0f0". */
static bool device_name(const char *s)
{
    size_t n = strlen(s);
    return isalpha((unsigned char)*s) && strpbrk(s, "0123456789") &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") == n;
}

/* "GPU7" to 7, -1 for anything else. */
static int gpu_name(const char *s)
{
    if (strncmp(s, "GPU", 3) || !gv_is_digits(s + 3) || strlen(s) > 5)
        return -1;
    return atoi(s + 3);
}

static enum kind cell_kind(const char *s)
{
    static const char *const classes[] = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"};
    static const char *const states[] = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    for (unsigned i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
        if (!strcmp(s, classes[i]))
            return KIND_CLASS;
    for (unsigned i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        if (!strcmp(s, states[i]))
            return KIND_P2P;
    if (!strncmp(s, "NV", 2) && gv_is_digits(s + 2) && strlen(s) <= 4)
        return KIND_CLASS;
    return KIND_NONE;
}

/* A heading has GPU0 and behind it other devices or the affinities; a row has a cell there. */
static bool heading(const struct gv_word *w, int n, struct matrix *m)
{
    int at = 0;
    while (at < n && strcmp(w[at].s, "GPU0"))
        at++;
    if (at == n || (at + 1 < n && (!strcmp(w[at + 1].s, "X") || cell_kind(w[at + 1].s))))
        return false;
    for (; at < n; at++) {
        int gpu = gpu_name(w[at].s);
        if (gpu >= 0 && gpu == m->gpus && m->gpus < GV_MAX_GPUS)
            m->gpus++;
        else if (gpu >= 0 || !device_name(w[at].s))
            break;
        m->columns++;
    }
    if (at < n && gpu_name(w[at].s) >= 0) /* a GPU out of order: the rows will not fit either */
        return m->columns++, true;
    bool ends = at < n ? !strcmp(w[at].s, "CPU") || !strcmp(w[at].s, "NUMA") : m->gpus > 1;
    if (!ends)
        return false;
    for (; at < n; at++) {
        m->has_affinity |= !strcmp(w[at].s, "CPU");
        m->has_numa |= !strcmp(w[at].s, "NUMA") && strcmp(w[at - 1].s, "GPU") != 0;
    }
    return true;
}

static char separator_of(const char *line)
{
    return strchr(line, '\t') ? '\t' : strchr(line, '|') ? '|' : 0;
}

static int words_of(const struct gv_text *t, int i, char **room, struct gv_word *w, bool kept)
{
    free(*room);
    *room = strdup(t->lines[i]);
    if (!*room)
        return 0;
    char separator = separator_of(*room);
    if (kept && separator) {
        char *start = *room + strspn(*room, " \t|>");
        return gv_words(start, separator, w);
    }
    for (char *p = *room; *p; p++)
        if (*p == '|' || (*p == '>' && p == *room)) /* markdown: tables and quotes */
            *p = ' ';
    return gv_words(*room, 0, w);
}

static int bad_cell(
    const struct gv_text *t, int i, const struct gv_word *w, const char *what, struct gv_error *err)
{
    return gv_error_at(
        err, t->path, (unsigned)i + 1, w->column,
        "'%.24s' is %s: the row is damaged or two cells are glued; paste the output anew", w->s,
        what);
}

static int read_cell(
    const struct gv_text *t, int i, const struct gv_word *w, int row, int column, struct matrix *m,
    struct gv_error *err)
{
    bool self = column < m->gpus && row == column;
    enum kind kind = cell_kind(w->s);
    if (self != !strcmp(w->s, "X"))
        return bad_cell(
            t, i, w, self ? "not the X of the GPU itself" : "no cell of such a matrix", err);
    if (!self && kind == KIND_NONE)
        return bad_cell(t, i, w, "no cell of such a matrix", err);
    if (!self && m->kind && kind != m->kind)
        return bad_cell(t, i, w, "of another matrix", err);
    m->kind = self ? m->kind : kind;
    if (column < m->gpus)
        strcpy(m->cell[row][column], !strcmp(w->s, "SOC") ? "SYS" : w->s);
    return 0;
}

static int read_row(
    const struct gv_text *t, int i, const struct gv_word *w, int n, int row, struct matrix *m,
    struct gv_error *err)
{
    m->row_line[row] = (unsigned)i + 1;
    m->numa[row] = -1;
    for (int c = 0; c < m->columns; c++) {
        if (c + 1 >= n)
            return gv_error_at(
                err, t->path, (unsigned)i + 1, 0,
                "the row of GPU%d ends after %d of %d cells: the paste is cut; take it anew", row,
                n - 1, m->columns);
        if (read_cell(t, i, &w[c + 1], row, c, m, err))
            return -1;
    }
    int at = 1 + m->columns + m->has_affinity;
    if (m->has_numa && at >= n)
        return gv_error_at(
            err, t->path, (unsigned)i + 1, 0,
            "the row of GPU%d ends before its NUMA node: the paste is cut; take it anew", row);
    if (m->has_numa && at < n && gv_is_digits(w[at].s) && strlen(w[at].s) < 5)
        m->numa[row] = atoi(w[at].s);
    return 0;
}

static bool ruler(const struct gv_word *w, int n)
{
    for (int i = 0; i < n; i++)
        if (strspn(w[i].s, "-:") != strlen(w[i].s))
            return false;
    return true;
}

/* All rows below the heading in line `*i`, which is left at the last one. */
static int read_rows(struct gv_text *t, int *i, struct matrix *m, char **room, struct gv_error *err)
{
    struct gv_word w[GV_MAX_WORDS];
    int row = 0, last = *i;
    while (row < m->gpus && last + 1 < t->n) {
        int n = words_of(t, last + 1, room, w, false);
        if (ruler(w, n)) {
            last++;
            continue;
        }
        if (gpu_name(w[0].s) != row)
            break;
        if (separator_of(t->lines[last + 1]))
            n = words_of(t, last + 1, room, w, true);
        last++;
        if (read_row(t, last, w, n, row++, m, err))
            return -1;
    }
    *i = last;
    if (row == m->gpus)
        return 0;
    return gv_error_at(
        err, t->path, (unsigned)last + 1, 0,
        "the row of GPU%d is missing after this line: the heading in line %u names %d GPUs; the "
        "paste is cut, take it anew",
        row, m->line, m->gpus);
}

static int symmetric(const struct gv_text *t, const struct matrix *m, struct gv_error *err)
{
    for (int a = 0; a < m->gpus; a++)
        for (int b = 0; b < a; b++)
            if (strcmp(m->cell[a][b], m->cell[b][a]) && m->kind == KIND_CLASS)
                return gv_error_at(
                    err, t->path, m->row_line[a], 0,
                    "GPU%d to GPU%d is %s, but line %u has %s for GPU%d to GPU%d: one of the rows "
                    "is damaged",
                    a, b, m->cell[a][b], m->row_line[b], m->cell[b][a], b, a);
    return 0;
}

/* The letter behind "-p2p" in the few lines above. */
static char capability(const struct gv_text *t, int heading_line)
{
    for (int i = heading_line; i >= 0 && i > heading_line - 3; i--) {
        const char *at = strstr(t->lines[i], "-p2p ");
        if (at && strchr("rwnap", at[5]) && at[5])
            return at[5];
    }
    return 0;
}

static enum gv_path_class nccl_class(const char *smi)
{
    if (!strncmp(smi, "NV", 2))
        return GV_PATH_NVL;
    if (!strcmp(smi, "PIX"))
        return GV_PATH_PIX;
    if (!strcmp(smi, "PXB") || !strcmp(smi, "PSB"))
        return GV_PATH_PXB;
    return strcmp(smi, "SYS") ? GV_PATH_PHB : GV_PATH_SYS; /* NODE is one CPU to NCCL */
}

/* One island: what PIX and PXB join. A GPU with NVLinks hides how it is joined by PCIe. */
static void islands(const struct matrix *m, struct gv_import_source *s)
{
    int island[GV_MAX_GPUS];
    for (int a = 0; a < m->gpus; a++) {
        island[a] = a;
        for (int b = 0; b < a; b++)
            if (nccl_class(m->cell[a][b]) == GV_PATH_PIX ||
                nccl_class(m->cell[a][b]) == GV_PATH_PXB)
                for (int old = island[a], c = 0; c <= a; c++)
                    if (island[c] == old)
                        island[c] = island[b];
    }
    for (int a = 0; a < m->gpus; a++) {
        bool hidden = false;
        for (int b = 0; b < m->gpus; b++)
            hidden |= a != b && !strncmp(m->cell[a][b], "NV", 2);
        if (!hidden)
            snprintf(s->gpus[a].island, sizeof(s->gpus[a].island), "%d", island[a]);
    }
}

static int take_classes(struct gv_import_source *s, const struct matrix *m, struct gv_error *err)
{
    for (int a = 0; a < m->gpus; a++)
        for (int b = 0; b < m->gpus; b++) {
            if (a == b)
                continue;
            struct gv_import_pair *p = gv_import_pair(s, a, b, m->row_line[a]);
            if (!p)
                return gv_import_no_memory(err);
            strcpy(p->smi_class, strcmp(m->cell[a][b], "PSB") ? m->cell[a][b] : "PXB");
            p->nccl_class = nccl_class(p->smi_class);
            p->nvlinks = strncmp(p->smi_class, "NV", 2) ? 0 : atoi(p->smi_class + 2);
        }
    islands(m, s);
    for (int a = 0; a < m->gpus; a++)
        s->gpus[a].numa_node = m->numa[a];
    return 0;
}

static int take_state(
    const struct gv_text *t, struct gv_import_source *s, const struct matrix *m, int a, int b,
    struct gv_error *err)
{
    const char *cell = m->cell[a][b];
    if (!strcmp(cell, "OK"))
        return 0; /* the driver's word is no proof: the pair stays unverified */
    if (!strcmp(cell, "U")) {
        gv_import_note(
            s, m->row_line[a], "GPU%d to GPU%d: the driver does not know about P2P", a, b);
        return 0;
    }
    if (!m->capability && !strcmp(cell, "NS"))
        return gv_error_at(
            err, t->path, m->row_line[a], 0,
            "NS without the command above the matrix: topo -p2p n and -p2p a print it also where "
            "P2P works; keep the line `nvidia-smi topo -p2p r`");
    struct gv_import_pair *p = gv_import_pair(s, a, b, m->row_line[a]);
    if (!p)
        return gv_import_no_memory(err);
    p->refused = true;
    return 0;
}

static int take_states(
    const struct gv_text *t, struct gv_import_source *s, const struct matrix *m,
    struct gv_error *err)
{
    if (m->capability == 'n' || m->capability == 'a' || m->capability == 'p') {
        gv_import_note(
            s, m->line, "topo -p2p %c is about %s, not about P2P: not taken", m->capability,
            m->capability == 'n'   ? "NVLinks"
            : m->capability == 'a' ? "atomics"
                                   : "PCIe alone");
        return 0;
    }
    for (int a = 0; a < m->gpus; a++)
        for (int b = 0; b < m->gpus; b++)
            if (a != b && take_state(t, s, m, a, b, err))
                return -1;
    return 0;
}

static int
take(struct gv_import *im, const struct gv_text *t, const struct matrix *m, struct gv_error *err)
{
    struct gv_import_source *s = gv_import_source(im, t, GV_IMPORT_SMI);
    if (!s)
        return gv_import_no_memory(err);
    s->whole = true;
    for (int a = 0; a < m->gpus; a++)
        gv_import_gpu(s, m->row_line[a]);
    if (m->kind == KIND_P2P)
        return take_states(t, s, m, err);
    return symmetric(t, m, err) ? -1 : take_classes(s, m, err);
}

/* A second matrix of the same kind in one paste: which of them is the machine's? */
static int
twice(const struct gv_text *t, const struct matrix *m, unsigned seen[256], struct gv_error *err)
{
    unsigned char key =
        m->kind == KIND_P2P ? (unsigned char)(m->capability ? m->capability : '?') : 'm';
    unsigned before = seen[key];
    seen[key] = m->line;
    if (!before)
        return 0;
    return gv_error_at(
        err, t->path, m->line, 0,
        "a second matrix of the same kind: the first begins in line %u; keep the one that is meant",
        before);
}

int gv_import_smi(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    unsigned seen[256] = {0}, found = 0;
    struct gv_word w[GV_MAX_WORDS];
    char *room = NULL;
    struct matrix *m = malloc(sizeof(*m));
    int rc = m ? 0 : gv_import_no_memory(err);
    for (int i = 0; i < t->n && !rc; i++) {
        memset(m, 0, sizeof(*m));
        int n = words_of(t, i, &room, w, false);
        if (!heading(w, n, m)) {
            if (n && gpu_name(w[0].s) >= 0 && n > 1 && (cell_kind(w[1].s) || !strcmp(w[1].s, "X")))
                rc = gv_error_at(
                    err, t->path, (unsigned)i + 1, 0,
                    "a row of %s without a heading that names it: the paste is damaged", w[0].s);
            continue;
        }
        m->line = (unsigned)i + 1;
        m->capability = capability(t, i);
        found++;
        if (read_rows(t, &i, m, &room, err) || twice(t, m, seen, err) || take(im, t, m, err))
            rc = -1;
    }
    free(room);
    free(m);
    if (!rc && !found)
        rc = gv_error_at(err, t->path, 0, 0, "no heading with GPU0 is in it: it is no topo matrix");
    return rc;
}
