/* Runs a fuzz target without libFuzzer: seeds, then seeds with random damage. The damage depends on
 * the number of the run alone, so that a failure comes again.
 *
 *   fuzz_NAME [-runs=N] [-seconds=N] [-from=N] [-dict=FILE] SEED...   (folders or files)
 *
 * An input that fails is kept as crash-NAME in the current folder. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_SEEDS = 512, MOST_WORDS = 512, MOST_BYTES = 1 << 20 };

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes seeds[MOST_SEEDS], words[MOST_WORDS], input;
static int nseeds, nwords;
static char crash[256];
static uint64_t random_state;

static uint64_t next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t below(size_t n)
{
    return n ? next() % n : 0;
}

static void keep_input(int number)
{
    int fd = open(crash, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, input.data, input.size) == (ssize_t)input.size)
        close(fd);
    signal(number, SIG_DFL);
    raise(number);
}

static void add_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || nseeds == MOST_SEEDS)
        return;
    struct bytes *seed = &seeds[nseeds++];
    seed->data = malloc(MOST_BYTES);
    GV_MUST(seed->data);
    seed->size = fread(seed->data, 1, MOST_BYTES, f);
    fclose(f);
}

static void add_seeds(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        add_file(path);
        return;
    }
    for (struct dirent *item; (item = readdir(dir));) {
        char name[PATH_MAX];
        snprintf(name, sizeof(name), "%s/%s", path, item->d_name);
        if (item->d_name[0] != '.')
            add_file(name);
    }
    closedir(dir);
}

/* libFuzzer's form: anything, then a word in quotes, with \\, \" and \xAB. */
static void add_words(const char *path)
{
    char line[512];
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f) && nwords < MOST_WORDS) {
        char *p = strchr(line, '"');
        if (line[0] == '#' || !p)
            continue;
        struct bytes *word = &words[nwords++];
        word->data = malloc(sizeof(line));
        GV_MUST(word->data);
        for (p++; *p && *p != '"'; p++) {
            unsigned code;
            if (*p == '\\' && p[1] == 'x' && sscanf(p + 2, "%2x", &code) == 1) {
                word->data[word->size++] = (uint8_t)code;
                p += 3;
            } else {
                p += *p == '\\' && p[1];
                word->data[word->size++] = (uint8_t)*p;
            }
        }
    }
    if (f)
        fclose(f);
}

static void insert(size_t at, const uint8_t *data, size_t n)
{
    if (input.size + n > MOST_BYTES)
        return;
    memmove(input.data + at + n, input.data + at, input.size - at);
    memmove(input.data + at, data, n);
    input.size += n;
}

static void join_part(const struct bytes *other)
{
    size_t at = below(other->size), n = 1 + below(other->size - at);
    if (other->size)
        insert(below(input.size + 1), other->data + at, n > 4096 ? 4096 : n);
}

static void damage(void)
{
    size_t at = below(input.size), n = 1 + below(16);
    uint8_t copy[256];
    switch (next() % 8) {
    case 0:
        if (input.size)
            input.data[at] ^= (uint8_t)(1u << next() % 8);
        break;
    case 1:
        if (input.size)
            input.data[at] = (uint8_t)next();
        break;
    case 2:
        n = at + n > input.size ? input.size - at : n;
        memmove(input.data + at, input.data + at + n, input.size - at - n);
        input.size -= n;
        break;
    case 3:
        n = below(sizeof(copy));
        n = at + n > input.size ? input.size - at : n;
        memcpy(copy, input.data + at, n);
        insert(below(input.size + 1), copy, n);
        break;
    case 4:
        join_part(&seeds[below((size_t)nseeds)]);
        break;
    case 5:
        if (next() % 8 == 0)
            input.size = at;
        break;
    default:
        if (nwords) {
            const struct bytes *word = &words[below((size_t)nwords)];
            insert(below(input.size + 1), word->data, word->size);
        }
    }
}

static void one_run(long number)
{
    random_state = 0x9e3779b97f4a7c15u * ((uint64_t)number + 1) | 1;
    for (int i = 0; i < 8; i++)
        next();
    const struct bytes *seed = number < nseeds ? &seeds[number] : &seeds[below((size_t)nseeds)];
    memcpy(input.data, seed->data, seed->size);
    input.size = seed->size;
    for (size_t n = number < nseeds ? 0 : 1 + below(8); n; n--)
        damage();
    LLVMFuzzerTestOneInput(input.data, input.size);
}

int main(int argc, char **argv)
{
    long runs = 1000, seconds = LONG_MAX, from = 0, done = 0;
    const char *name = strrchr(argv[0], '/');
    snprintf(crash, sizeof(crash), "crash-%.200s", name ? name + 1 : argv[0]);
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "-dict=", 6))
            add_words(argv[i] + 6);
        else if (argv[i][0] != '-')
            add_seeds(argv[i]);
        else if (
            sscanf(argv[i], "-runs=%ld", &runs) != 1 && sscanf(argv[i], "-from=%ld", &from) != 1 &&
            sscanf(argv[i], "-seconds=%ld", &seconds) != 1)
            return fprintf(stderr, "%s is not known\n", argv[i]), 2;
    }
    if (!nseeds)
        nseeds = 1;
    input.data = malloc(MOST_BYTES);
    GV_MUST(input.data);
    signal(SIGABRT, keep_input);
    signal(SIGSEGV, keep_input);
    time_t begin = time(NULL);
    for (; done < runs && time(NULL) - begin < seconds; done++)
        one_run(from + done);
    printf(
        "%ld runs, %d seeds, %d words, %ld s\n", done, nseeds, nwords, (long)(time(NULL) - begin));
    return 0;
}
