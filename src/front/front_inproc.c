// SPDX-License-Identifier: MIT
/* In-process transport: the same split of reads and writes as the others, any number of
 * callers. */
#include "front/front_inproc.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/clock.h"

struct front_inproc {
	struct workers *workers;
};

int front_inproc_new(struct front_inproc **ret_front, struct store *store, int writers)
{
	struct front_inproc *front = calloc(1, sizeof(*front));

	if (!front)
		return -ENOMEM;
	int err = workers_new(&front->workers, store, writers, 0);

	if (err < 0) {
		free(front);
		return err;
	}
	*ret_front = front;
	return 0;
}

void front_inproc_free(struct front_inproc *front)
{
	if (!front)
		return;
	workers_free(front->workers);
	free(front);
}

static void post_done(struct store_request *request)
{
	sem_post(request->context);
}

int front_inproc_request(struct front_inproc *front, struct store_thread *thread, enum store_op op,
			 uint64_t offset_bytes, uint64_t length_bytes, void *data)
{
	struct write_job job = {
		.request =
			{
				.op = op,
				.offset_bytes = offset_bytes,
				.length_bytes = length_bytes,
				.data = data,
				.received_ns = clock_now_ns(),
			},
	};

	if (op != STORE_WRITE) {
		store_submit(thread, &job.request);
		return job.request.result;
	}
	sem_t ended;

	sem_init(&ended, 0, 0);
	job.request.done = post_done;
	job.request.context = &ended;
	workers_submit(front->workers, &job);
	while (sem_wait(&ended) < 0)
		; /* EINTR */
	sem_destroy(&ended);
	return job.request.result;
}
