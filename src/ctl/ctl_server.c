// SPDX-License-Identifier: MIT
/*
 * The server. One thread, "uzswap:ctl", owns every connection and waits in
 * epoll; nothing that a client does or leaves undone makes it wait elsewhere.
 * Long calls run on the worker (ctl_worker.c), which wakes it through an eventfd.
 *
 * A connection is a small state machine. It reads until a message is complete,
 * answers it, and reads on only when the answer has left: a client that sends
 * much and reads nothing fills its own socket, not our memory. Replies come in
 * the order of the calls, so a connection whose long call runs is not read
 * either.
 *
 * Bounds: CONNECTIONS_MAX connections, of MESSAGE_BYTES_MAX of input and one
 * reply each. When all are taken, a newcomer gets the place of the client that
 * was silent longest, among those of the user who has most: neither idle nor
 * half-open clients keep others out.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "ctl/ctl.h"
#include "ctl/ctl_json.h"
#include "ctl/ctl_methods.h"
#include "ctl/ctl_socket.h"
#include "ctl/ctl_worker.h"

#define CONNECTIONS_MAX   64u
#define MESSAGE_BYTES_MAX (64 * 1024)

/* A reply with CTL_DEVICES_MAX devices takes about 1 MiB; this is a backstop. */
#define REPLY_BYTES_MAX (4 * 1024 * 1024)

/* How often stalled clients are looked for while a reply waits to be taken. */
#define STALL_CHECK_NS (500 * UZ_NSEC_PER_MSEC)

/* New connections taken in one round: a flood of them leaves time for requests. */
#define ACCEPTS_PER_ROUND 16

/* How long accept(2) rests when the process has no descriptors left. */
#define ACCEPT_PAUSE_NS (100 * UZ_NSEC_PER_MSEC)

#define EVENTS_PER_ROUND 32

/* What an epoll event is about: one of these, or a connection's index and generation. */
#define TOKEN_LISTENER UINT64_MAX
#define TOKEN_EVENT_FD (UINT64_MAX - 1)

struct connection {
	int fd;		     /* -1: this place is free */
	uint32_t generation; /* one more with each client that had this place */
	uint32_t interest;   /* what epoll watches for */
	struct ctl_peer peer;
	uint64_t active_ns; /* last complete message, or the connect */
	struct varlink_input input;
	bool eof;     /* the client sends no more */
	bool in_call; /* a long call runs; its reply is due */
	bool more;    /* and wants progress */
	/* The reply that is being sent, where output points, and the one after it. */
	struct json_object *reply;
	struct json_object *next_reply;
	const char *output;
	size_t output_length;
	size_t output_sent;
	uint64_t sent_ns; /* when the client last took a part of it */
};

/* All but `quit` belongs to the ctl thread once that runs. */
struct ctl_server {
	struct thread thread;
	struct ctl_worker worker;
	struct ctl_methods methods;
	struct ctl_socket listener;
	gid_t stats_group;
	uint64_t stall_limit_ns;
	int epoll_fd;
	int event_fd;
	uint64_t accept_paused_until_ns; /* 0: accepting */
	struct connection connections[CONNECTIONS_MAX];
	/*
	 * Set once by ctl_server_free (release), which then writes to event_fd; read by
	 * the ctl thread (acquire) whenever that has woken it.
	 */
	_Atomic bool quit;
};

static bool is_open(const struct connection *connection)
{
	return connection->fd >= 0;
}

static bool is_sending(const struct connection *connection)
{
	return connection->output_sent < connection->output_length;
}

/* Whether the next message may be taken up. */
static bool is_ready(struct connection *connection)
{
	return is_open(connection) && !is_sending(connection) && !connection->in_call &&
	       varlink_input_ready(&connection->input);
}

static void connection_close(struct connection *connection)
{
	close(connection->fd);
	json_object_put(connection->reply);
	json_object_put(connection->next_reply);
	varlink_input_done(&connection->input);
	*connection = (struct connection){
		.fd = -1,
		.generation = connection->generation + 1,
	};
}

static uint64_t connection_token(const struct ctl_server *server,
				 const struct connection *connection)
{
	uint64_t index = (uint64_t)(connection - server->connections);

	return (uint64_t)connection->generation << 32 | index;
}

/* The connection that an event is for, or NULL when it is gone. */
static struct connection *find_connection(struct ctl_server *server, uint64_t token)
{
	struct connection *connection = &server->connections[token & UINT32_MAX];

	return is_open(connection) && connection->generation == token >> 32 ? connection
									    : NULL;
}

/* Has epoll watch for what the connection's state waits for. */
static void connection_watch(struct ctl_server *server, struct connection *connection)
{
	struct epoll_event event = {.data.u64 = connection_token(server, connection)};

	if (is_sending(connection))
		event.events = EPOLLOUT;
	else if (!connection->in_call && !connection->eof &&
		 !varlink_input_ready(&connection->input))
		event.events = EPOLLIN;
	if (event.events == connection->interest)
		return;
	/*
	 * A change needs no memory in the kernel, and the descriptor is open: it cannot
	 * fail.
	 */
	epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, connection->fd, &event);
	connection->interest = event.events;
}

/*
 * Makes `reply` the one to send; it is consumed, NULL: it could not be made. Returns 0
 * or -errno.
 */
static int set_output(struct connection *connection, struct json_object *reply)
{
	size_t length = 0;
	const char *text = reply ? varlink_text(reply, &length) : NULL;

	if (!text || length > REPLY_BYTES_MAX) {
		json_object_put(reply);
		return -ENOMEM;
	}
	connection->reply = reply;
	connection->output = text;
	connection->output_length = length;
	connection->output_sent = 0;
	connection->sent_ns = clock_now_ns();
	return 0;
}

/* The reply has left: the next one, if any, takes its place. Returns 0 or -errno. */
static int next_output(struct connection *connection)
{
	struct json_object *next = connection->next_reply;

	json_object_put(connection->reply);
	connection->reply = NULL;
	connection->next_reply = NULL;
	connection->output_length = connection->output_sent = 0;
	return next ? set_output(connection, next) : 0;
}

/* Sends what the client takes at once. Returns 0, or -errno: the connection must end. */
static int connection_flush(struct connection *connection)
{
	while (is_sending(connection)) {
		ssize_t sent =
			send(connection->fd, connection->output + connection->output_sent,
			     connection->output_length - connection->output_sent,
			     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? 0 : -errno;
		connection->output_sent += (size_t)sent;
		connection->sent_ns = clock_now_ns();
		if (!is_sending(connection)) {
			int err = next_output(connection);

			if (err < 0)
				return err;
		}
	}
	return 0;
}

/*
 * Sends `reply`, after the one that is being sent; there is never more than one
 * waiting. It is consumed; NULL: it could not be made. Returns 0 or -errno.
 */
static int connection_send(struct connection *connection, struct json_object *reply)
{
	if (is_sending(connection)) {
		connection->next_reply = reply;
		return reply ? 0 : -ENOMEM;
	}
	int err = set_output(connection, reply);

	return err < 0 ? err : connection_flush(connection);
}

/*
 * Reads what has come, as far as there is room. Returns 0, or -errno when the client is
 * gone.
 */
static int connection_receive(struct connection *connection)
{
	/*
	 * A complete message is dealt with first: what comes after it can wait in the
	 * socket.
	 */
	while (!varlink_input_ready(&connection->input)) {
		char *space;
		ssize_t room = varlink_input_space(&connection->input, &space);

		if (room <= 0)
			return room < 0 ? (int)room : -EMSGSIZE;
		ssize_t got = recv(connection->fd, space, (size_t)room, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (got == 0) {
			connection->eof = true;
			return 0;
		}
		varlink_input_filled(&connection->input, (size_t)got);
	}
	return 0;
}

/* Hands a long call to the worker. Returns 0 or -errno. */
static int start_job(struct ctl_server *server, struct connection *connection,
		     const struct varlink_call *call, const struct ctl_job *job)
{
	if (ctl_worker_submit(&server->worker, job) < 0)
		return call->oneway ? 0
				    : connection_send(connection, ctl_job_reply_busy());
	connection->in_call = !call->oneway;
	connection->more = call->more;
	return 0;
}

/*
 * Takes the next message and answers it. Returns 0, or -errno when the connection must
 * end.
 */
static int connection_answer(struct ctl_server *server, struct connection *connection)
{
	struct json_object *reply = NULL;
	struct varlink_call call;
	struct ctl_job job;
	const char *message;
	size_t length;
	int err = varlink_input_next(&connection->input, &message, &length);

	if (err <= 0)
		return err;
	connection->active_ns = clock_now_ns();
	err = varlink_call_parse(&call, message, length);
	if (err < 0)
		return err;
	err = ctl_methods_call(&server->methods, &connection->peer, &call, &reply, &job);
	if (err == 1)
		err = start_job(server, connection, &call, &job);
	else if (err == 0 && call.oneway)
		json_object_put(reply);
	else if (err == 0)
		err = connection_send(connection, reply);
	varlink_call_done(&call);
	varlink_input_trim(&connection->input);
	return err;
}

/* After each event: ends the connection, or watches for what comes next. */
static void connection_settle(struct ctl_server *server, struct connection *connection,
			      int err)
{
	bool waits = connection->in_call || is_sending(connection) ||
		     varlink_input_ready(&connection->input);

	if (err < 0)
		log_debug("control: closing the connection of uid %u, pid %d: %s",
			  connection->peer.uid, connection->peer.pid, strerror(-err));
	if (err < 0 || (connection->eof && !waits))
		connection_close(connection);
	else
		connection_watch(server, connection);
}

static void connection_event(struct ctl_server *server, struct connection *connection,
			     uint32_t events)
{
	int err = 0;

	if (is_sending(connection))
		err = connection_flush(connection);
	else if (connection->in_call)
		/* Only the client's end is reported then. The call itself goes on. */
		err = events & (EPOLLHUP | EPOLLERR) ? -EPIPE : 0;
	else if (!connection->eof)
		err = connection_receive(connection);
	connection_settle(server, connection, err);
}

static unsigned count_of_user(const struct ctl_server *server, uid_t uid)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		count += is_open(&server->connections[i]) &&
			 server->connections[i].peer.uid == uid;
	return count;
}

/* Whose place a newcomer takes: see the top. A client whose call runs keeps its place. */
static struct connection *find_victim(struct ctl_server *server)
{
	struct connection *victim = NULL;
	unsigned most = 0;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = &server->connections[i];

		if (!is_open(connection) || connection->in_call)
			continue;
		unsigned count = count_of_user(server, connection->peer.uid);

		if (count > most ||
		    (count == most && connection->active_ns < victim->active_ns)) {
			victim = connection;
			most = count;
		}
	}
	return victim;
}

/* A free place, made free if need be. */
static struct connection *find_place(struct ctl_server *server)
{
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (!is_open(&server->connections[i]))
			return &server->connections[i];
	struct connection *victim = find_victim(server);

	connection_close(victim);
	return victim;
}

/* Takes over `fd`. */
static void connection_open(struct ctl_server *server, int fd)
{
	struct ctl_peer peer;

	if (ctl_socket_peer(fd, server->stats_group, &peer) < 0) {
		close(fd);
		return;
	}
	struct connection *connection = find_place(server);

	connection->fd = fd;
	connection->peer = peer;
	connection->active_ns = clock_now_ns();
	varlink_input_init(&connection->input, MESSAGE_BYTES_MAX);
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = connection_token(server, connection),
	};

	connection->interest = event.events;
	if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		connection_close(connection);
		return;
	}
	/* Most clients have sent their call by now: it is answered in this round. */
	connection_settle(server, connection, connection_receive(connection));
}

static void watch_listener(struct ctl_server *server, bool on)
{
	struct epoll_event event = {
		.events = on ? EPOLLIN : 0,
		.data.u64 = TOKEN_LISTENER,
	};

	epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->listener.fd, &event);
	server->accept_paused_until_ns = on ? 0 : clock_now_ns() + ACCEPT_PAUSE_NS;
}

static void accept_some(struct ctl_server *server)
{
	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		int fd = accept4(server->listener.fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			connection_open(server, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		/*
		 * No descriptors or memory: the listener stays readable, so look away a
		 * while.
		 */
		if (errno != EAGAIN)
			watch_listener(server, false);
		return;
	}
}

/* The connection whose long call runs; NULL when it is oneway or the client is gone. */
static struct connection *find_caller(struct ctl_server *server)
{
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (is_open(&server->connections[i]) && server->connections[i].in_call)
			return &server->connections[i];
	return NULL;
}

/* Passes on what the worker tells. */
static void deliver_news(struct ctl_server *server)
{
	uint64_t remaining_bytes;
	struct ctl_job job;
	enum ctl_worker_news news =
		ctl_worker_poll(&server->worker, &remaining_bytes, &job);
	struct connection *caller = find_caller(server);
	int err = 0;

	if (news == CTL_WORKER_NO_NEWS || !caller)
		return;
	if (news == CTL_WORKER_DONE) {
		caller->in_call = false;
		err = connection_send(caller, ctl_job_reply(&job));
	} else if (caller->more && !is_sending(caller)) {
		/* To a slow reader this one is not sent; the next one says more. */
		err = connection_send(caller, ctl_job_reply_progress(remaining_bytes));
	}
	connection_settle(server, caller, err);
}

/* Answers one message of every connection. Returns whether there are more. */
static bool answer_round(struct ctl_server *server)
{
	bool more = false;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = &server->connections[i];

		if (!is_ready(connection))
			continue;
		connection_settle(server, connection,
				  connection_answer(server, connection));
		more |= is_ready(connection);
	}
	return more;
}

/* Drops clients that do not take their reply. Returns whether any reply is under way. */
static bool drop_stalled(struct ctl_server *server)
{
	uint64_t now_ns = clock_now_ns();
	bool sending = false;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *connection = &server->connections[i];

		if (!is_open(connection) || !is_sending(connection))
			continue;
		if (now_ns - connection->sent_ns > server->stall_limit_ns)
			connection_settle(server, connection, -ETIMEDOUT);
		else
			sending = true;
	}
	return sending;
}

/* epoll's timeout in milliseconds. */
static int next_timeout(struct ctl_server *server, bool ready)
{
	uint64_t now_ns = clock_now_ns(), wait_ns = UINT64_MAX;

	if (drop_stalled(server))
		wait_ns = UZ_MIN(STALL_CHECK_NS, server->stall_limit_ns);
	if (server->accept_paused_until_ns != 0) {
		if (now_ns >= server->accept_paused_until_ns)
			watch_listener(server, true);
		else
			wait_ns =
				UZ_MIN(wait_ns, server->accept_paused_until_ns - now_ns);
	}
	if (ready)
		return 0;
	return wait_ns == UINT64_MAX ? -1
				     : (int)uz_div_round_up(wait_ns, UZ_NSEC_PER_MSEC);
}

static void dispatch_event(struct ctl_server *server, const struct epoll_event *event)
{
	if (event->data.u64 == TOKEN_LISTENER) {
		accept_some(server);
	} else if (event->data.u64 == TOKEN_EVENT_FD) {
		uint64_t count;
		ssize_t got = read(server->event_fd, &count, sizeof(count));

		(void)got; /* the worker's state tells what there is, not the count */
		deliver_news(server);
	} else {
		struct connection *connection = find_connection(server, event->data.u64);

		if (connection)
			connection_event(server, connection, event->events);
	}
}

/* The replies that are due leave, unless their clients take too long. */
static void say_farewell(struct ctl_server *server)
{
	uint64_t deadline_ns = clock_now_ns() + CTL_FAREWELL_NS;
	bool sending = true;

	deliver_news(server);
	while (sending && clock_now_ns() < deadline_ns) {
		sending = false;
		for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
			struct connection *connection = &server->connections[i];

			if (!is_open(connection))
				continue;
			if (connection_flush(connection) < 0)
				connection_close(connection);
			else
				sending |= is_sending(connection);
		}
		if (sending)
			clock_sleep_ns(5 * UZ_NSEC_PER_MSEC);
	}
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (is_open(&server->connections[i]))
			connection_close(&server->connections[i]);
}

static void serve(void *argument)
{
	struct ctl_server *server = argument;
	struct epoll_event events[EVENTS_PER_ROUND];
	bool ready = false;

	while (!atomic_load_explicit(&server->quit, memory_order_acquire)) {
		int count = epoll_wait(server->epoll_fd, events, EVENTS_PER_ROUND,
				       next_timeout(server, ready));

		for (int i = 0; i < count; i++)
			dispatch_event(server, &events[i]);
		ready = answer_round(server);
	}
	say_farewell(server);
}

static int watch(const struct ctl_server *server, int fd, uint64_t token)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = token};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/*
 * Opens the descriptors. On failure what is open stays for close_all. Returns 0 or
 * -errno.
 */
static int open_all(struct ctl_server *server, const struct ctl_config *config)
{
	server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server->event_fd < 0)
		return -errno;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return -errno;
	int err = ctl_socket_listen(&server->listener, config->runtime_dir,
				    config->stats_group);

	if (err == 0)
		err = watch(server, server->listener.fd, TOKEN_LISTENER);
	if (err == 0)
		err = watch(server, server->event_fd, TOKEN_EVENT_FD);
	return err;
}

static void close_all(struct ctl_server *server)
{
	if (server->listener.fd >= 0)
		ctl_socket_close(&server->listener);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	if (server->event_fd >= 0)
		close(server->event_fd);
	free(server);
}

int ctl_server_new(struct ctl_server **ret_server, const struct ctl_config *config)
{
	struct ctl_server *server = calloc(1, sizeof(*server));

	if (!server)
		return -ENOMEM;
	server->stats_group = config->stats_group;
	server->stall_limit_ns =
		config->stall_limit_ns ? config->stall_limit_ns : CTL_STALL_LIMIT_NS;
	server->methods.ops = config->ops;
	server->methods.context = config->context;
	server->listener.fd = server->epoll_fd = server->event_fd = -1;
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		server->connections[i].fd = -1;
	int err = open_all(server, config);

	if (err == 0)
		err = ctl_worker_init(&server->worker, config->ops, config->context,
				      server->event_fd);
	if (err == 0) {
		err = thread_start(&server->thread, "uzswap:ctl", serve, server, -1, 0);
		if (err < 0) {
			ctl_worker_stop(&server->worker);
			ctl_worker_done(&server->worker);
		}
	}
	if (err < 0) {
		close_all(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

void ctl_server_free(struct ctl_server *server)
{
	uint64_t one = 1;

	if (!server)
		return;
	/* First the worker: the ctl thread then has the last job's result to pass on. */
	ctl_worker_stop(&server->worker);
	atomic_store_explicit(&server->quit, true, memory_order_release);
	ssize_t written = write(server->event_fd, &one, sizeof(one));

	(void)written; /* an eventfd that is full wakes the reader as well */
	thread_join(&server->thread);
	ctl_worker_done(&server->worker);
	close_all(server);
}
