/* A small job on real GPUs: communicators alive together in one process, AllReduce checked and
 * timed.
 *
 *   nccl_job SET...      each SET a list of devices (0,1): one communicator by ncclCommInitAll
 *   nccl_job --ranks N   this process is rank $RANK of N and drives device $LOCAL_RANK; the id
 * comes through $GV_ID_FILE
 *
 * Prints one line a communicator: set, bytes, wrong elements, busbw in GB/s (median of 20). Built
 * where the GPUs are: cc nccl_job.c -lnccl -lcudart. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX 16
#define STEPS 20

#define CUDA(x)                                                                                    \
    do {                                                                                           \
        cudaError_t rc_ = (x);                                                                     \
        if (rc_)                                                                                   \
            exit((printf("%s: %s\n", #x, cudaGetErrorString(rc_)), 1));                            \
    } while (0)
#define NCCL(x)                                                                                    \
    do {                                                                                           \
        ncclResult_t rc_ = (x);                                                                    \
        if (rc_)                                                                                   \
            exit(                                                                                  \
                (printf("%s: %s, %s\n", #x, ncclGetErrorString(rc_), ncclGetLastError(NULL)), 1)); \
    } while (0)

struct set {
    int n, nranks, dev[MAX];
    ncclComm_t comm[MAX];
    cudaStream_t stream[MAX];
    cudaEvent_t start[MAX], stop[MAX];
    int *buf[MAX];
};

static void parse(struct set *s, const char *text)
{
    char copy[128], *save = NULL;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *t = strtok_r(copy, ",", &save); t && s->n < MAX; t = strtok_r(NULL, ",", &save))
        s->dev[s->n++] = atoi(t);
    s->nranks = s->n;
}

static void prepare(struct set *s, size_t bytes)
{
    for (int i = 0; i < s->n; i++) {
        CUDA(cudaSetDevice(s->dev[i]));
        CUDA(cudaStreamCreate(&s->stream[i]));
        CUDA(cudaEventCreate(&s->start[i]));
        CUDA(cudaEventCreate(&s->stop[i]));
        CUDA(cudaMalloc((void **)&s->buf[i], bytes));
    }
}

/* One AllReduce on all ranks of this process; returns the slowest rank's time in ms. */
static float step(struct set *s, size_t count)
{
    NCCL(ncclGroupStart());
    for (int i = 0; i < s->n; i++) {
        CUDA(cudaSetDevice(s->dev[i]));
        CUDA(cudaEventRecord(s->start[i], s->stream[i]));
        NCCL(
            ncclAllReduce(s->buf[i], s->buf[i], count, ncclInt, ncclSum, s->comm[i], s->stream[i]));
    }
    NCCL(ncclGroupEnd());
    float worst = 0;
    for (int i = 0; i < s->n; i++) {
        float ms;
        CUDA(cudaSetDevice(s->dev[i]));
        CUDA(cudaEventRecord(s->stop[i], s->stream[i]));
        CUDA(cudaEventSynchronize(s->stop[i]));
        CUDA(cudaEventElapsedTime(&ms, s->start[i], s->stop[i]));
        worst = ms > worst ? ms : worst;
    }
    return worst;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Every rank puts in i * 3 + 1 at element i; the sum is nranks times that. */
static size_t wrong_after_one(struct set *s, size_t count, int *host)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        host[i] = (int)(i % 100003) * 3 + 1;
    for (int r = 0; r < s->n; r++) {
        CUDA(cudaSetDevice(s->dev[r]));
        CUDA(cudaMemcpy(s->buf[r], host, count * sizeof(int), cudaMemcpyHostToDevice));
    }
    step(s, count);
    for (int r = 0; r < s->n; r++) {
        CUDA(cudaSetDevice(s->dev[r]));
        CUDA(cudaMemcpy(host, s->buf[r], count * sizeof(int), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < count; i++)
            wrong += host[i] != s->nranks * ((int)(i % 100003) * 3 + 1);
    }
    return wrong;
}

static void measure(struct set *s, const char *name, size_t bytes)
{
    size_t count = bytes / sizeof(int);
    int *host = malloc(bytes);
    float ms[STEPS];
    size_t wrong = wrong_after_one(s, count, host);
    free(host);
    for (int i = 0; i < 5; i++)
        step(s, count);
    for (int i = 0; i < STEPS; i++)
        ms[i] = step(s, count);
    qsort(ms, STEPS, sizeof(ms[0]), by_value);
    double factor = 2.0 * (s->nranks - 1) / s->nranks;
    printf(
        "set %s bytes %zu wrong %zu busbw %.2f\n", name, bytes, wrong,
        factor * (double)bytes / (ms[STEPS / 2] * 1e6));
    fflush(stdout);
}

static void one_rank(struct set *s, int nranks)
{
    ncclUniqueId id;
    int rank = atoi(getenv("RANK"));
    const char *path = getenv("GV_ID_FILE");
    char part[512];
    snprintf(part, sizeof(part), "%s.part", path);
    s->n = 1;
    s->nranks = nranks;
    s->dev[0] = atoi(getenv("LOCAL_RANK"));
    if (!rank) {
        NCCL(ncclGetUniqueId(&id));
        FILE *f = fopen(part, "w");
        fwrite(&id, sizeof(id), 1, f);
        fclose(f);
        rename(part, path);
    } else {
        FILE *f;
        while (!(f = fopen(path, "r")))
            usleep(1000);
        if (fread(&id, sizeof(id), 1, f) != 1)
            exit(1);
        fclose(f);
    }
    CUDA(cudaSetDevice(s->dev[0]));
    NCCL(ncclCommInitRank(&s->comm[0], nranks, id, rank));
}

int main(int argc, char **argv)
{
    static struct set sets[MAX];
    size_t bytes[] = {1 << 16, 256 << 20};
    int n = 0, version = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    ncclGetVersion(&version);
    if (argc == 3 && !strcmp(argv[1], "--ranks")) {
        one_rank(&sets[0], atoi(argv[2]));
        n = 1;
    }
    for (int i = 1; !sets[0].n || (n && i < argc && argv[1][0] != '-'); i++, n++) {
        if (i >= argc)
            return 2;
        parse(&sets[n], argv[i]);
        NCCL(ncclCommInitAll(sets[n].comm, sets[n].n, sets[n].dev));
    }
    printf("nccl %d communicators %d\n", version, n);
    for (int i = 0; i < n; i++) {
        prepare(&sets[i], bytes[1]);
        for (int k = 0; k < 2; k++)
            measure(&sets[i], n == 1 && argv[1][0] == '-' ? "rank" : argv[i + 1], bytes[k]);
    }
    for (int i = 0; i < n; i++)
        for (int r = 0; r < sets[i].n; r++)
            NCCL(ncclCommDestroy(sets[i].comm[r]));
    return 0;
}
