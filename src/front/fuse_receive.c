// SPDX-License-Identifier: MIT
/*
 * The daemon's own loop on the session's descriptor. Format of the messages:
 * include/uapi/linux/fuse.h and Documentation/filesystems/fuse*.rst.
 *
 * Threads: receivers ("uzswap:r0"…) and the write workers. One receiver at a
 * time is the leader: it alone looks at the descriptor. It serves reads,
 * discards and small writes itself and hands large writes to the workers. When
 * requests come faster than it serves them, it passes the lead on before it
 * serves one, so that several receivers serve at the same time; otherwise it
 * stays leader, and one thread on one CPU does all the work without a wake-up.
 *
 * A leader that finds nothing polls for a while before it sleeps, if that has
 * been paying lately: waking a thread on another CPU costs more than serving a
 * read. It does not poll while writes are being compressed, because then the
 * CPU has better things to do.
 *
 * A request needs a buffer before it is known what it is. There are a few more
 * buffers than threads; when all are with the workers, the leader waits for one
 * (`buffer_freed`), which takes as long as compressing one request.
 *
 * Lock (rank FRONT): lead, list of free buffers. Never held over a system call
 * or a page.
 */
#include "front/fuse_receive.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"
#include "front/workers.h"

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6) /* FUSE 7.38, Linux 6.2 */
#endif

/* What stands before the data of a WRITE. */
#define WRITE_HEADER_BYTES (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))

/* Writes up to this size are compressed by the receiver: a wake-up costs as much as two
 * pages. */
#define SMALL_WRITE_BYTES (2 * UZ_PAGE_SIZE)

/* Polling is tried when at least a quarter of the last polls (weights 7/8) found
 * something, and otherwise every 64th time, to notice when that changes. */
#define POLL_SCORE_MAX	 1024u
#define POLL_SCORE_WORTH 256u
#define POLL_PROBE_EVERY 64u

struct buffer {
	struct write_job job;
	struct fuse_receive *receive;
	uint64_t unique;
	struct buffer *next_free;
	unsigned char *data;	/* page-aligned, FUSE_RECEIVE_MAX_BYTES */
	unsigned char *message; /* data - WRITE_HEADER_BYTES */
};

struct receiver {
	struct fuse_receive *receive;
	struct thread thread;
	struct store_thread *store_thread;
	struct buffer *buffer;
};

struct fuse_receive {
	struct fuse_receive_config config;
	struct workers *workers;
	int stop_fd; /* eventfd: readable once stopping */
	_Atomic int stopping;
	_Atomic int ended; /* set once by the leader that saw ENODEV; relaxed: a flag for people */
	struct lock lock;
	struct condition lead_free;
	struct condition buffer_freed;
	struct condition ready;
	bool led; /* there is a leader; under the lock, as the next four */
	struct buffer *free_buffers;
	int followers; /* waiting for the lead */
	int started;
	int start_error;
	/* The leader's own, handed on with the lead (under the lock): */
	unsigned poll_score;
	unsigned poll_skipped;
	bool busy; /* the last request was there without waiting */
	void *memory;
	size_t memory_bytes;
	struct buffer *buffers;
	int buffer_count;
	int receiver_count;
	struct receiver receiver[];
};

/* --- answers -------------------------------------------------------------- */

/* A failed answer is a request that the kernel has given up (unmounted): nothing to do.
 */
static void answer(struct fuse_receive *receive, uint64_t unique, int error, const void *payload,
		   size_t length)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + (error == 0 ? length : 0)),
		.error = error,
		.unique = unique,
	};
	struct iovec parts[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = (void *)(uintptr_t)payload, .iov_len = length},
	};
	ssize_t written = writev(receive->config.fuse_fd, parts, error == 0 && length > 0 ? 2 : 1);

	(void)written;
}

static void buffer_release(struct fuse_receive *receive, struct buffer *buffer)
{
	lock_take(&receive->lock);
	bool was_empty = receive->free_buffers == NULL;

	buffer->next_free = receive->free_buffers;
	receive->free_buffers = buffer;
	if (was_empty)
		condition_wake_one(&receive->buffer_freed);
	lock_release(&receive->lock);
}

static void answer_write(struct buffer *buffer)
{
	struct fuse_write_out out = {.size = (uint32_t)buffer->job.request.length_bytes};

	answer(buffer->receive, buffer->unique, buffer->job.request.result, &out, sizeof(out));
}

/* On the worker that carried it out. */
static void write_done(struct store_request *request)
{
	struct buffer *buffer = request->context;

	answer_write(buffer);
	buffer_release(buffer->receive, buffer);
}

/* --- requests ------------------------------------------------------------- */

static void serve_read(struct receiver *self, const struct fuse_in_header *header,
		       uint64_t received_ns)
{
	const struct fuse_read_in *in = (const void *)(header + 1);
	struct store_request request = {
		.op = STORE_READ,
		.offset_bytes = in->offset,
		.length_bytes = in->size,
		.data = self->buffer->data,
		.received_ns = received_ns,
	};
	uint64_t unique = header->unique;

	/* The data overwrites what follows the header, but not the header: it lies before
	 * `data`. */
	if (in->size == 0 || in->size > FUSE_RECEIVE_MAX_BYTES) {
		answer(self->receive, unique, in->size == 0 ? 0 : -EINVAL, NULL, 0);
		return;
	}
	store_submit(self->store_thread, &request);
	answer(self->receive, unique, request.result, self->buffer->data, request.length_bytes);
}

static void serve_fallocate(struct receiver *self, const struct fuse_in_header *header,
			    uint64_t received_ns)
{
	const struct fuse_fallocate_in *in = (const void *)(header + 1);
	struct store_request request = {
		.op = STORE_DISCARD,
		.offset_bytes = in->offset,
		.length_bytes = in->length,
		.received_ns = received_ns,
	};

	/* loop(4) turns discard into a punched hole and write-zeroes into one or a zeroed
	 * range. */
	if (!(in->mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))) {
		answer(self->receive, header->unique, -EOPNOTSUPP, NULL, 0);
		return;
	}
	store_submit(self->store_thread, &request);
	answer(self->receive, header->unique, request.result, NULL, 0);
}

/* Takes over the buffer when a worker needs it. */
static void serve_write(struct receiver *self, const struct fuse_in_header *header, size_t length,
			uint64_t received_ns)
{
	const struct fuse_write_in *in = (const void *)(header + 1);
	struct fuse_receive *receive = self->receive;
	struct buffer *buffer = self->buffer;

	if (length != WRITE_HEADER_BYTES + in->size) {
		answer(receive, header->unique, -EINVAL, NULL, 0);
		return;
	}
	buffer->unique = header->unique;
	buffer->job.request = (struct store_request){
		.op = STORE_WRITE,
		.offset_bytes = in->offset,
		.length_bytes = in->size,
		.data = buffer->data,
		.received_ns = received_ns,
		.context = buffer,
	};
	if (in->size <= SMALL_WRITE_BYTES) {
		/* The leader must not wait for memory: reads would wait with it. */
		buffer->job.request.nowait = true;
		store_submit(self->store_thread, &buffer->job.request);
		if (buffer->job.request.result != -EAGAIN) {
			answer_write(buffer);
			return;
		}
		buffer->job.request.nowait = false;
	}
	buffer->job.request.done = write_done;
	self->buffer = NULL;
	workers_submit(receive->workers, &buffer->job);
}

/* libfuse 3.14 cannot say PARALLEL_DIRECT_WRITES, so this answer is built by hand. */
static void serve_open(struct receiver *self, const struct fuse_in_header *header)
{
	struct fuse_open_out out = {
		.fh = FUSE_RECEIVE_FILE_NODE,
		.open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES,
	};

	answer(self->receive, header->unique, 0, &out, sizeof(out));
}

static void serve(struct receiver *self, size_t length, uint64_t received_ns)
{
	const struct fuse_in_header *header = (const void *)self->buffer->message;

	switch (header->opcode) {
	case FUSE_READ:
		serve_read(self, header, received_ns);
		break;
	case FUSE_WRITE:
		serve_write(self, header, length, received_ns);
		break;
	case FUSE_FALLOCATE:
		serve_fallocate(self, header, received_ns);
		break;
	case FUSE_OPEN:
		if (header->nodeid == FUSE_RECEIVE_FILE_NODE) {
			serve_open(self, header);
			break;
		}
		self->receive->config.rare(self->receive->config.context, self->buffer->message,
					   length);
		break;
	case FUSE_INTERRUPT:
		break; /* every request ends soon by itself */
	default:
		self->receive->config.rare(self->receive->config.context, self->buffer->message,
					   length);
		break;
	}
}

/* --- the lead ------------------------------------------------------------- */

static bool stopping(struct fuse_receive *receive)
{
	return atomic_load_explicit(&receive->stopping, memory_order_acquire) != 0;
}

/* Becomes leader with a buffer in hand. Returns false when it is time to end. */
static bool lead_take(struct receiver *self)
{
	struct fuse_receive *receive = self->receive;
	bool mine = false;

	lock_take(&receive->lock);
	receive->followers++;
	while (receive->led && !stopping(receive))
		condition_wait(&receive->lead_free, &receive->lock);
	receive->followers--;
	if (!stopping(receive)) {
		receive->led = true;
		mine = true;
	}
	lock_release(&receive->lock);
	return mine;
}

static void lead_pass(struct fuse_receive *receive)
{
	lock_take(&receive->lock);
	receive->led = false;
	bool wake = receive->followers > 0;

	lock_release(&receive->lock);
	if (wake)
		condition_wake_one(&receive->lead_free);
}

static bool buffer_take(struct receiver *self)
{
	struct fuse_receive *receive = self->receive;

	if (self->buffer)
		return true;
	lock_take(&receive->lock);
	while (!receive->free_buffers && !stopping(receive))
		condition_wait(&receive->buffer_freed, &receive->lock);
	self->buffer = receive->free_buffers;
	if (self->buffer)
		receive->free_buffers = self->buffer->next_free;
	lock_release(&receive->lock);
	return self->buffer != NULL;
}

/* Returns the message's length, 0 when there is none now, or -ENODEV once unmounted. */
static ssize_t receive_now(struct receiver *self)
{
	ssize_t length = read(self->receive->config.fuse_fd, self->buffer->message,
			      WRITE_HEADER_BYTES + FUSE_RECEIVE_MAX_BYTES);

	if (length >= (ssize_t)sizeof(struct fuse_in_header))
		return length;
	if (length < 0 && errno == ENODEV) {
		atomic_store_explicit(&self->receive->ended, 1, memory_order_relaxed);
		return -ENODEV;
	}
	/* ENOENT: the request was interrupted before it was read. Anything unknown must
	 * not end the service, nor turn into a busy loop. */
	if (length < 0 && errno != EAGAIN && errno != EINTR && errno != ENOENT)
		clock_sleep_ns(UZ_NSEC_PER_MSEC);
	return 0;
}

static bool poll_is_worth_it(struct fuse_receive *receive)
{
	if (receive->config.poll_ns == 0 || !workers_idle(receive->workers))
		return false;
	if (receive->poll_score >= POLL_SCORE_WORTH)
		return true;
	if (++receive->poll_skipped < POLL_PROBE_EVERY)
		return false;
	receive->poll_skipped = 0;
	return true;
}

static void poll_score(struct fuse_receive *receive, bool found)
{
	receive->poll_score -= receive->poll_score / 8;
	if (found)
		receive->poll_score += POLL_SCORE_MAX / 8;
}

static ssize_t receive_polling(struct receiver *self)
{
	struct fuse_receive *receive = self->receive;
	uint64_t deadline_ns = clock_now_ns() + receive->config.poll_ns;
	ssize_t length;

	do {
		/* Whoever else wants this CPU goes first; often that is the loop device's
		 * worker with our next request. */
		sched_yield();
		length = receive_now(self);
	} while (length == 0 && workers_idle(receive->workers) && !stopping(receive) &&
		 clock_now_ns() < deadline_ns);
	poll_score(receive, length > 0);
	return length;
}

/* The leader's wait for the next request. Returns its length, or 0 when it is time to
 * end. */
static size_t receive_next(struct receiver *self)
{
	struct fuse_receive *receive = self->receive;
	ssize_t length = receive_now(self);

	receive->busy = length > 0;
	while (length == 0 && !stopping(receive)) {
		struct pollfd fds[2] = {
			{.fd = receive->config.fuse_fd, .events = POLLIN},
			{.fd = receive->stop_fd, .events = POLLIN},
		};

		if (poll_is_worth_it(receive)) {
			length = receive_polling(self);
			if (length != 0)
				break;
		}
		poll(fds, 2, -1);
		length = receive_now(self);
	}
	return length > 0 ? (size_t)length : 0;
}

/* Tells whether the lead should be passed on before the request is served. */
static bool must_pass(const struct receiver *self)
{
	const struct fuse_in_header *header = (const void *)self->buffer->message;

	switch (header->opcode) {
	case FUSE_READ:
	case FUSE_FALLOCATE:
		return self->receive->busy;
	case FUSE_WRITE:
		/* A large one is handed to the workers at once, a small one is like a
		 * read. */
		return self->receive->busy &&
		       ((const struct fuse_write_in *)(header + 1))->size <= SMALL_WRITE_BYTES;
	default:
		/* libfuse may do anything, for instance wait for another request. */
		return true;
	}
}

static void receiver_loop(struct receiver *self)
{
	struct fuse_receive *receive = self->receive;

	while (lead_take(self)) {
		bool leading = true;

		while (leading) {
			if (!buffer_take(self)) {
				lead_pass(receive);
				return;
			}
			size_t length = receive_next(self);
			uint64_t received_ns = clock_now_ns();

			if (length == 0) {
				lead_pass(receive);
				return;
			}
			if (must_pass(self)) {
				lead_pass(receive);
				leading = false;
			}
			serve(self, length, received_ns);
		}
	}
}

static void receiver_run(void *argument)
{
	struct receiver *self = argument;
	struct fuse_receive *receive = self->receive;
	int err = store_thread_new(&self->store_thread, receive->config.store, true);

	lock_take(&receive->lock);
	receive->started++;
	if (err < 0)
		receive->start_error = err;
	condition_wake_all(&receive->ready);
	lock_release(&receive->lock);
	if (err < 0)
		return;
	receiver_loop(self);
	if (self->buffer)
		buffer_release(receive, self->buffer);
	store_thread_free(self->store_thread);
}

/* --- life ----------------------------------------------------------------- */

static int make_buffers(struct fuse_receive *receive, int count)
{
	/* A page before the data holds the headers, at its end. */
	const size_t each = UZ_PAGE_SIZE + FUSE_RECEIVE_MAX_BYTES;

	receive->memory_bytes = each * (size_t)count;
	receive->memory = mmap(NULL, receive->memory_bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (receive->memory == MAP_FAILED) {
		receive->memory = NULL;
		return -ENOMEM;
	}
	madvise(receive->memory, receive->memory_bytes, MADV_DONTDUMP);
	receive->buffers = calloc((size_t)count, sizeof(*receive->buffers));
	if (!receive->buffers)
		return -ENOMEM;
	receive->buffer_count = count;
	for (int i = 0; i < count; i++) {
		struct buffer *buffer = &receive->buffers[i];

		buffer->receive = receive;
		buffer->data = (unsigned char *)receive->memory + each * (size_t)i + UZ_PAGE_SIZE;
		buffer->message = buffer->data - WRITE_HEADER_BYTES;
		buffer->next_free = receive->free_buffers;
		receive->free_buffers = buffer;
	}
	return 0;
}

static int start_receivers(struct fuse_receive *receive)
{
	int count = receive->config.receivers, running = 0, err = 0;

	receive->receiver_count = count;
	for (; running < count; running++) {
		struct receiver *receiver = &receive->receiver[running];
		char name[32];

		snprintf(name, sizeof(name), "uzswap:r%d", running);
		receiver->receive = receive;
		/* Reads go ahead of compression: above the workers, below the kernel's
		 * own threads. */
		err = thread_start(&receiver->thread, name, receiver_run, receiver, -1, -19);
		if (err < 0)
			break;
	}
	lock_take(&receive->lock);
	while (receive->started < running)
		condition_wait(&receive->ready, &receive->lock);
	if (err == 0)
		err = receive->start_error;
	lock_release(&receive->lock);
	return err;
}

int fuse_receive_new(struct fuse_receive **ret_receive, const struct fuse_receive_config *config)
{
	struct fuse_receive *receive = calloc(
		1, sizeof(*receive) + (size_t)config->receivers * sizeof(receive->receiver[0]));

	if (!receive)
		return -ENOMEM;
	receive->config = *config;
	receive->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	lock_init(&receive->lock, LOCK_RANK_FRONT);
	condition_init(&receive->lead_free);
	condition_init(&receive->buffer_freed);
	condition_init(&receive->ready);
	int err = receive->stop_fd < 0 ? -errno : 0;
	int flags = fcntl(config->fuse_fd, F_GETFL);

	if (err == 0 && (flags < 0 || fcntl(config->fuse_fd, F_SETFL, flags | O_NONBLOCK) < 0))
		err = -errno;
	if (err == 0)
		err = make_buffers(receive, config->receivers + 2 * config->writers + 4);
	if (err == 0)
		err = workers_new(&receive->workers, config->store, config->writers, -5);
	if (err == 0)
		err = start_receivers(receive);
	if (err < 0) {
		fuse_receive_free(receive);
		return err;
	}
	*ret_receive = receive;
	return 0;
}

bool fuse_receive_ended(const struct fuse_receive *receive)
{
	return atomic_load_explicit(&receive->ended, memory_order_relaxed) != 0;
}

void fuse_receive_free(struct fuse_receive *receive)
{
	if (!receive)
		return;
	uint64_t one = 1;

	atomic_store_explicit(&receive->stopping, 1, memory_order_release);
	if (receive->stop_fd >= 0 && write(receive->stop_fd, &one, sizeof(one)) < 0)
		receive->start_error = -errno; /* cannot happen: the counter is far from full */
	lock_take(&receive->lock);
	condition_wake_all(&receive->lead_free);
	condition_wake_all(&receive->buffer_freed);
	lock_release(&receive->lock);
	for (int i = 0; i < receive->receiver_count; i++)
		thread_join(&receive->receiver[i].thread);
	workers_free(receive->workers);
	if (receive->memory)
		munmap(receive->memory, receive->memory_bytes);
	free(receive->buffers);
	condition_done(&receive->lead_free);
	condition_done(&receive->buffer_freed);
	condition_done(&receive->ready);
	lock_done(&receive->lock);
	if (receive->stop_fd >= 0)
		close(receive->stop_fd);
	free(receive);
}
