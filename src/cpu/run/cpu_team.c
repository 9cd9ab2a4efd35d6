/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a run for a team of threads, and calls functions on the team.
 */
#include "cpu/run/cpu_product.h"

#include <string.h>

const cpu_product *tgl_cpu_product_of_team(const cpu_product *product, thread_pool *threads,
                                           char *buffer)
{
    cpu_team *own = (void *)buffer;
    own->shape = *product->shape;
    own->plan = *product->plan;
    if (product->plan->blocks != NULL) {
        own->blocks = *product->plan->blocks;
        own->plan.blocks = &own->blocks;
    }
    own->run = *product->run;
    own->product = (cpu_product){.shape = &own->shape,
                                 .plan = &own->plan,
                                 .run = &own->run,
                                 .workspace = buffer + sizeof *own,
                                 .team = own};
    own->threads = threads;
    return &own->product;
}

void tgl_cpu_run_team(const cpu_product *product, thread_pool_fn *body, void *job, size_t bytes)
{
    cpu_team *own = product->team;
    if (own == NULL) {
        body(job, 0, 1);
        return;
    }
    memcpy(own->job, job, bytes);
    own->task = (thread_pool_task){.body = body, .context = own->job};
    tgl_thread_pool_run(own->threads, product->plan->threads, &own->task);
}
