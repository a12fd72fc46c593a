/* Rule 6: a plan needs one node, and proof of it. What a launcher's variables say, and what the
 * user says. */
#ifndef GV_PROOF_H
#define GV_PROOF_H

enum gv_nodes { GV_NODES_UNKNOWN, GV_NODES_ONE, GV_NODES_SEVERAL };

/* What the environment says about all ranks of the job, innermost launcher first:
 * GV100_SINGLE_NODE=1, torchrun (WORLD_SIZE and LOCAL_WORLD_SIZE), Open MPI, Hydra (PMI_SIZE and
 * MPI_LOCALNRANKS), MVAPICH2, Slurm's step. NCCL_SOCKET_IFNAME naming the loopback alone proves one
 * node too: nobody else could connect. `*who` names the variable that decided. */
enum gv_nodes gv_proof_environment(const char **who);

/* WORLD_SIZE of the job, 0 where no launcher says it. */
int gv_proof_world_size(void);

#endif
