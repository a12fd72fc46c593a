#include "tests/bench/parse_texts.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/bench/model.h"

#define RANKS 8

static int speak(FILE *out, int rank)
{
    return fprintf(out, "node-a:4000:%d [%d] NCCL INFO ", 4100 + rank, rank);
}

static size_t communicator(FILE *out, unsigned number)
{
    int n = 0;
    for (int r = 0; r < RANKS; r++) {
        n += speak(out, r);
        n += fprintf(
            out,
            "ncclCommInitRankConfig comm 0x55d0%08x rank %d nranks 8 cudaDev %d nvmlDev %d busId "
            "%x000 commId 0x%016x - Init START\n",
            number * 16 + (unsigned)r, r, r, r, 0x1a + r, 0xabc000 + number);
    }
    for (int c = 0; c < 4; c++) {
        n += speak(out, 0);
        n += fprintf(out, "Channel %02d/04 :    0   1   2   3   4   5   6   7\n", c);
    }
    for (int r = 0; r < RANKS; r++)
        for (int c = 0; c < 4; c++) {
            int to = (r + 1) % RANKS;
            n += speak(out, r);
            n += fprintf(
                out, "Channel %02d/0 : %d[%d] -> %d[%d] via %s\n", c, r, r, to, to,
                r % 4 == 3 ? "SHM/direct/direct" : "P2P/CUMEM");
        }
    for (int r = 0; r < RANKS; r++) {
        n += speak(out, r);
        n += fprintf(
            out,
            "ncclCommInitRankConfig comm 0x55d0%08x rank %d nranks 8 cudaDev %d nvmlDev %d busId "
            "%x000 commId 0x%016x - Init COMPLETE\n",
            number * 16 + (unsigned)r, r, r, r, 0x1a + r, 0xabc000 + number);
    }
    return (size_t)n;
}

static size_t step(FILE *out, unsigned number, unsigned count)
{
    int n = 0;
    for (int r = 0; r < RANKS; r++) {
        n += speak(out, r);
        n += fprintf(
            out,
            "AllReduce: opCount %x sendbuff 0x7f1c%08x recvbuff 0x7f1c%08x acc (nil) count 6553600 "
            "datatype 7 op 0 root 0 comm 0x55d0%08x [nranks=8] stream 0x55cf%08x\n",
            count, count * 512, count * 512, number * 16 + (unsigned)r, 4096 + r);
    }
    for (int i = 0; i < 3; i++)
        n += fprintf(
            out, "[2026-08-23 10:11:12] step %6u | loss %.4f | lr 1.20e-04 | tokens/s %u\n", count,
            2.3 + (count % 97) / 100.0, 11000 + count % 900);
    return (size_t)n;
}

void gv_text_log(FILE *out, size_t bytes)
{
    size_t done = 0, next = 0;
    unsigned number = 0, count = 0;
    done += (size_t)fprintf(out, "node-a:4000:4100 [0] NCCL INFO NCCL version 2.28.9+cuda12.9\n");
    while (done < bytes) {
        if (done >= next) {
            done += communicator(out, ++number);
            next += 20000000;
        }
        done += step(out, number, count++);
    }
}

static void table_head(struct gv_str *out)
{
    gv_str_add(
        out, "# nThread 1 nGpus 8 minBytes 8 maxBytes 4294967296 step: 2(factor) warmup iters: 5 "
             "iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n");
    for (int r = 0; r < RANKS; r++)
        gv_str_addf(
            out, "#  Rank  %d Group  0 Pid   4711 on     node-a device  %d [0x%x] Tesla V100\n", r,
            r, 0x1a + r);
    gv_str_add(
        out,
        "#\n#                                                              out-of-place            "
        " "
        "          in-place          \n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
        "time   algbw   busbw #wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
        "(us)  (GB/s)  (GB/s)       \n");
}

/* Returns its busbw as printed. */
static double table_row(struct gv_str *out, uint64_t bytes)
{
    double us = 20 + (double)bytes / 4000, alg = (double)bytes / us / 1e3;
    char text[32];
    gv_str_addf(
        out,
        "%12llu %13llu     float     sum      -1 %8.1f %7.2f %7.2f      0 %8.1f %7.2f %7.2f      "
        "0\n",
        (unsigned long long)bytes, (unsigned long long)bytes / 4, us, alg, alg * 1.75, us, alg,
        alg * 1.75);
    snprintf(text, sizeof(text), "%.2f", alg * 1.75);
    return atof(text);
}

void gv_text_tables(struct gv_str *out, int rows)
{
    double sum = 0;
    for (int i = 0; i < rows; i++) {
        if (i % 30 == 0)
            table_head(out);
        sum += table_row(out, (uint64_t)8 << i % 30);
        if (i % 30 < 29)
            continue;
        gv_str_addf(
            out, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %.5f\n#\n\n", sum / 30);
        sum = 0;
    }
}

void gv_text_matrix(struct gv_str *out, int gpus)
{
    for (int b = 0; b < gpus; b++)
        gv_str_addf(out, "\tGPU%d", b);
    gv_str_add(out, "\tCPU Affinity\tNUMA Affinity\n");
    for (int a = 0; a < gpus; a++) {
        gv_str_addf(out, "GPU%d", a);
        for (int b = 0; b < gpus; b++)
            gv_str_add(out, a == b ? "\t X " : a / 4 == b / 4 ? "\tPIX" : "\tNODE");
        gv_str_add(out, "\t0-63\t0\n");
    }
    gv_str_add(out, "\nLegend:\n\n  X    = Self\n");
}

void gv_text_topology(struct gv_str *out)
{
    static struct gv_bench_machine m;
    m.nnodes = 1;
    snprintf(m.nodes[0].cpus, sizeof(m.nodes[0].cpus), "ff");
    snprintf(m.cpu.arch, sizeof(m.cpu.arch), "x86_64");
    snprintf(m.cpu.vendor, sizeof(m.cpu.vendor), "GenuineIntel");
    for (int i = 0; i < GV_MAX_GPUS; i++) {
        struct gv_bench_pci *pci = &m.gpus[m.ngpus].pci;
        snprintf(pci->bus_id, sizeof(pci->bus_id), "%04x:%02x:00.0", 1 + i / 8, 16 + i % 8);
        snprintf(pci->parent, sizeof(pci->parent), "pci%04x:00", 1 + i / 8);
        snprintf(pci->pci_class, sizeof(pci->pci_class), "0x030200");
        snprintf(pci->speed, sizeof(pci->speed), "16.0 GT/s PCIe");
        pci->width = 16;
        pci->vendor = 0x10de;
        m.gpus[m.ngpus++].sm = 70;
    }
    gv_bench_machine_topology(&m, out);
}
