/* NCCL's own detection, as far as it depends on the machine alone: from each GPU upwards every
 * second PCI level of sysfs, until the host bridge ends in a CPU node (NCCL 2.19 to 2.30 alike). */
#include <string.h>

#include "testbench/machines/gv_bench_machine.h"

/* The function that NCCL names as the parent of `pci`, or NULL for the CPU. */
static const struct gv_bench_pci *
detected_parent(const struct gv_bench_machine *m, const struct gv_bench_pci *pci)
{
    const struct gv_bench_pci *first = gv_bench_machine_bridge(m, pci->parent);
    return first ? gv_bench_machine_bridge(m, first->parent) : NULL;
}

static int detected_node(const struct gv_bench_machine *m, const struct gv_bench_pci *pci)
{
    for (const struct gv_bench_pci *up; (up = detected_parent(m, pci));)
        pci = up;
    return pci->node < 0 ? 0 : pci->node;
}

/* True if a GPU's branch passes through the bridge. */
static bool leads_to_gpu(const struct gv_bench_machine *m, const struct gv_bench_pci *bridge)
{
    for (int i = 0; i < m->ngpus; i++)
        for (const struct gv_bench_pci *p = &m->gpus[i].pci; p; p = detected_parent(m, p))
            if (p == bridge)
                return true;
    return false;
}

static void open_pci(const struct gv_bench_pci *pci, struct gv_str *out)
{
    gv_str_addf(
        out,
        "<pci busid=\"%s\" class=\"%s\" vendor=\"0x%04x\" device=\"0x%04x\" "
        "subsystem_vendor=\"0x%04x\" subsystem_device=\"0x0000\" link_speed=\"%s\" "
        "link_width=\"%d\">\n",
        pci->bus_id, pci->pci_class, pci->vendor, pci->device, pci->vendor, pci->speed, pci->width);
}

static void add_gpu(const struct gv_bench_machine *m, int i, struct gv_str *out)
{
    const struct gv_bench_gpu *gpu = &m->gpus[i];

    open_pci(&gpu->pci, out);
    gv_str_addf(out, "<gpu dev=\"%d\" sm=\"%d\" gdr=\"1\">\n", i, gpu->sm);
    for (int k = 0; k < m->nnvlinks; k++) {
        const int *pair = m->nvlinks[k].gpus;
        if (pair[0] != i && pair[1] != i)
            continue;
        const struct gv_bench_pci *peer = &m->gpus[pair[0] == i ? pair[1] : pair[0]].pci;
        gv_str_addf(
            out, "<nvlink target=\"%s\" count=\"%d\" tclass=\"%s\"/>\n", peer->bus_id,
            m->nvlinks[k].count, peer->pci_class);
    }
    gv_str_add(out, "</gpu>\n</pci>\n");
}

/* Everything whose detected parent is `above` (NULL: the CPU node `node`). */
static void add_below(
    const struct gv_bench_machine *m, const struct gv_bench_pci *above, int node,
    struct gv_str *out)
{
    for (int i = 0; i < m->nbridges; i++) {
        const struct gv_bench_pci *bridge = &m->bridges[i];
        if (detected_parent(m, bridge) != above || !leads_to_gpu(m, bridge) ||
            (!above && detected_node(m, bridge) != node))
            continue;
        open_pci(bridge, out);
        add_below(m, bridge, node, out);
        gv_str_add(out, "</pci>\n");
    }
    for (int i = 0; i < m->ngpus; i++) {
        const struct gv_bench_pci *pci = &m->gpus[i].pci;
        if (detected_parent(m, pci) == above && (above || detected_node(m, pci) == node))
            add_gpu(m, i, out);
    }
}

int gv_bench_machine_topology(const struct gv_bench_machine *machine, struct gv_str *out)
{
    gv_str_add(out, "<system version=\"1\">\n");
    for (int i = 0; i < machine->nnodes; i++) {
        const struct gv_bench_node *node = &machine->nodes[i];
        gv_str_addf(
            out,
            "<cpu numaid=\"%d\" affinity=\"%s\" arch=\"%s\" vendor=\"%s\" familyid=\"%d\" "
            "modelid=\"%d\">\n",
            node->node, node->cpus, machine->cpu.arch, machine->cpu.vendor, machine->cpu.family,
            machine->cpu.model);
        add_below(machine, NULL, node->node, out);
        gv_str_add(out, "</cpu>\n");
    }
    gv_str_add(out, "</system>\n");
    return out->failed ? -1 : 0;
}
