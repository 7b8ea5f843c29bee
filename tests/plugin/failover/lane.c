/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/failover/lane.h"

/* over data that has been sent: nothing may be sent from there any more */
#define SCRIBBLE 0x3c

static size_t room_of(const struct lane *l)
{
	return message_room(l->largest) + MESSAGE_OPTIONAL;
}

void lane_prepare(struct lane *l)
{
	size_t size = LANE_SLOTS * room_of(l);

	l->memory = calloc(1, size); /* few of its pages are ever touched */
	CHECK(l->memory, "memory");
	for (unsigned i = 0; i < LANE_SLOTS; i++)
		l->slot[i].data = l->memory + i * room_of(l);
	l->mr = rig_reg(l->rig, l->comm, l->memory, size);
}

void lane_close(struct lane *l)
{
	struct ha_plugin *p = &l->rig->plugin;

	for (unsigned i = 0; i < LANE_SLOTS; i++)
		if (l->slot[i].mr)
			OK(p->dereg(l->comm, l->slot[i].mr));
	OK(p->dereg(l->comm, l->mr));
	OK(l->end == SENDER ? p->close_send(l->comm) : p->close_recv(l->comm));
	if (l->listen)
		OK(p->close_listen(l->listen));
	free(l->memory);
}

/* Did it work? An error ends the lane, where errors are expected. */
static bool has_succeeded(struct lane *l, ncclResult_t result)
{
	if (result == ncclSuccess)
		return true;
	CHECK(atomic_load(&l->shared->may_fail), "%s of connection %u, message %llu: error %d: %s",
	      l->end == SENDER ? "sender" : "receiver", l->number, (unsigned long long)l->complete,
	      result, rig_last_warning());
	if (l->failed)
		return false;
	l->failed = true;
	atomic_fetch_add(&l->shared->failed[l->end], 1);
	return false;
}

/* Optional receives have memory of their own: they may be written twice, with the same bytes. */
static uint8_t *place_of(const struct lane *l, const struct lane_slot *s, unsigned i)
{
	return s->message.optional ? s->data + message_room(l->largest)
				   : s->data + s->message.at[i];
}

static void *get_registration(struct lane *l, struct lane_slot *s)
{
	if (!s->message.fresh)
		return l->mr;
	if (!s->mr)
		has_succeeded(l, l->rig->plugin.abi->reg(&l->rig->plugin, l->comm, s->data,
							 room_of(l), &s->mr));
	return s->mr;
}

static void deregister_slot(struct lane *l, struct lane_slot *s)
{
	if (s->mr)
		OK(l->rig->plugin.dereg(l->comm, s->mr));
	s->mr = NULL;
}

/* ---- sending ---- */

static void send_post(struct lane *l, struct lane_slot *s)
{
	const struct message *m = &s->message;
	void *mr = get_registration(l, s);

	while (s->posted < m->n && !l->failed) {
		unsigned i = (s->posted + m->turn) % m->n;
		void *request = NULL;

		if (!has_succeeded(l, l->rig->plugin.abi->isend(&l->rig->plugin, l->comm,
								place_of(l, s, i), m->size[i],
								100 + (int)i, mr, &request)) ||
		    !request)
			return;
		s->request[i] = request;
		s->posted++;
	}
}

static void send_begin(struct lane *l)
{
	struct lane_slot *s = &l->slot[l->begun % LANE_SLOTS];

	message_make(&s->message, l->number, l->begun, l->largest);
	for (unsigned i = 0; i < s->message.n; i++)
		memcpy(place_of(l, s, i), s->message.bytes[i], s->message.size[i]);
	s->posted = s->done = 0;
	s->over = false;
	l->begun++;
}

static void send_look(struct lane *l, struct lane_slot *s)
{
	const struct message *m = &s->message;

	for (unsigned i = 0; i < m->n && !l->failed; i++) {
		int done = 0, size = -1;

		if (s->done >> i & 1 || (i + m->n - m->turn) % m->n >= s->posted)
			continue;
		if (!has_succeeded(l, l->rig->plugin.test(s->request[i], &done, &size)) || !done)
			continue;
		CHECK((size_t)size == m->size[i], "%d of %zu bytes sent", size, m->size[i]);
		memset(place_of(l, s, i), SCRIBBLE, m->size[i]);
		s->done |= 1u << i;
	}
	if (s->done != (1u << m->n) - 1)
		return;
	s->over = true;
	deregister_slot(l, s);
}

static void send_step(struct lane *l)
{
	struct lane_slot *head = l->begun ? &l->slot[(l->begun - 1) % LANE_SLOTS] : NULL;

	if (head && head->posted < head->message.n)
		send_post(l, head);
	else if (l->begun < l->complete + LANE_DEPTH &&
		 l->begun < atomic_load(&l->shared->last[l->number]))
		send_begin(l);
	for (uint64_t k = l->complete; k < l->begun && !l->failed; k++)
		if (!l->slot[k % LANE_SLOTS].over)
			send_look(l, &l->slot[k % LANE_SLOTS]);
}

/* ---- receiving ---- */

static void compare_slot(struct lane *l, const struct lane_slot *s, const char *when)
{
	const struct message *m = &s->message;

	for (unsigned i = 0; i < m->n; i++) {
		size_t wrong;

		if (m->optional) {
			CHECK(message_is_there(m, i, place_of(l, s, i)),
			      "an optional message of %zu bytes, %s", m->size[i], when);
			continue;
		}
		wrong = message_differ(m, i, place_of(l, s, i));
		CHECK(wrong == m->size[i] + m->slack[i],
		      "connection %u, message %llu, buffer %u of %u: byte %zu of %zu, %s",
		      l->number, (unsigned long long)l->complete, i, m->n, wrong, m->size[i], when);
	}
}

/* The memory is poisoned once, however often irecv is asked. */
static void recv_begin(struct lane *l)
{
	struct lane_slot *s = &l->slot[l->begun % LANE_SLOTS];
	struct message *m = &s->message;

	if (s->over)
		compare_slot(l, s, "long after its receive");
	message_make(m, l->number, l->begun, l->largest);
	for (unsigned i = 0; i < m->n && !m->optional; i++)
		memset(place_of(l, s, i), MESSAGE_POISON, m->size[i] + m->slack[i]);
	s->over = false;
	s->posted = s->done = 0;
	l->begun++;
}

static void recv_post(struct lane *l, struct lane_slot *s)
{
	const struct message *m = &s->message;
	const struct ha_plugin_abi *abi = l->rig->plugin.abi;
	void *data[MESSAGE_BUFFERS], *mrs[MESSAGE_BUFFERS], *mr = get_registration(l, s);
	void *request = m->optional ? (void *)NCCL_NET_OPTIONAL_RECV_COMPLETION : NULL;
	size_t sizes[MESSAGE_BUFFERS];
	int tags[MESSAGE_BUFFERS];

	for (unsigned i = 0; i < m->n; i++) {
		data[i] = place_of(l, s, i);
		sizes[i] = m->size[i] + m->slack[i];
		tags[i] = 100 + (int)i;
		mrs[i] = mr;
	}
	if (l->failed || !has_succeeded(l, abi->irecv(&l->rig->plugin, l->comm, (int)m->n, data,
						      sizes, tags, mrs, &request)))
		return;
	s->request[0] = request;
	s->posted = request != NULL;
}

static void flush_slot(struct lane *l, struct lane_slot *s, int *sizes)
{
	struct rig_deadline deadline = rig_deadline("a flush");
	void *data = place_of(l, s, 0), *mr = get_registration(l, s), *request = NULL;
	int done = 0;

	if (!has_succeeded(l, l->rig->plugin.iflush(l->comm, 1, &data, sizes, &mr, &request)))
		return;
	while (request && !done && has_succeeded(l, l->rig->plugin.test(request, &done, NULL)))
		rig_pause(&deadline);
}

static void recv_look(struct lane *l, struct lane_slot *s)
{
	const struct message *m = &s->message;
	int done = 0, sizes[MESSAGE_BUFFERS] = { 0 };

	if (!s->done) {
		if (!has_succeeded(l, l->rig->plugin.test(s->request[0], &done, sizes)) || !done)
			return;
		s->done = 1;
		for (unsigned i = 0; i < m->n && !m->optional; i++)
			CHECK((size_t)sizes[i] == m->size[i], "buffer %u: %d of %zu bytes", i,
			      sizes[i], m->size[i]);
		if (!m->optional && m->n == 1 && m->size[0])
			flush_slot(l, s, sizes);
	}
	if (m->optional && !message_is_there(m, 0, place_of(l, s, 0)))
		return;
	compare_slot(l, s, "when it was complete");
	s->over = true;
	deregister_slot(l, s);
}

/* Behind an optional receive there is always another one: nobody asks for its end, so the plugin
 * might not be called again. */
static bool more_wanted(const struct lane *l, const struct lane_slot *head)
{
	return !atomic_load(&l->shared->stop) || (head && head->message.optional);
}

static void recv_step(struct lane *l)
{
	struct lane_slot *head = l->begun ? &l->slot[(l->begun - 1) % LANE_SLOTS] : NULL;
	uint64_t before = l->complete;

	if (head && !head->posted)
		recv_post(l, head);
	else if (!more_wanted(l, head))
		atomic_store(&l->shared->last[l->number], l->begun);
	else if (l->begun < l->complete + LANE_DEPTH)
		recv_begin(l);
	for (uint64_t k = before; k < l->begun && !l->failed; k++)
		if (l->slot[k % LANE_SLOTS].posted && !l->slot[k % LANE_SLOTS].over)
			recv_look(l, &l->slot[k % LANE_SLOTS]);
}

bool lane_step(struct lane *l)
{
	uint64_t before = l->begun + l->complete;

	if (l->end == SENDER)
		send_step(l);
	else
		recv_step(l);
	while (!l->failed && l->complete < l->begun && l->slot[l->complete % LANE_SLOTS].over)
		l->complete++;
	if (l->end == RECEIVER)
		atomic_store(&l->shared->whole[l->number], l->complete);
	return l->begun + l->complete != before;
}

bool lane_over(const struct lane *l)
{
	/* A sender may have made one more ready, which no receive will come for. */
	return l->failed || l->complete == atomic_load(&l->shared->last[l->number]);
}
