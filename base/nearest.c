#include "base/gv_nearest.h"

#include <stddef.h>
#include <string.h>

#define LONGEST 64

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein's distance with one row; longer words count as far apart. */
static int distance(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b);
    if (la >= LONGEST || lb >= LONGEST)
        return LONGEST;
    int row[LONGEST];
    for (size_t j = 0; j <= lb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= la; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= lb; j++) {
            int up = row[j];
            row[j] = min3(up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = up;
        }
    }
    return row[lb];
}

const char *gv_nearest(const char *word, const char *const *words, int n)
{
    const char *best = NULL;
    int best_distance = LONGEST;
    for (int i = 0; i < n; i++) {
        if (!words[i])
            continue;
        int d = distance(word, words[i]);
        size_t longer = strlen(word) > strlen(words[i]) ? strlen(word) : strlen(words[i]);
        int near = longer < 6 ? 2 : (int)longer / 3;
        if (d <= near && d < best_distance) {
            best_distance = d;
            best = words[i];
        }
    }
    return best;
}
