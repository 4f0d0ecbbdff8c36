/* What of DPDK is inline, or a matter of its own structures: the other side of `sys.rs`.
 *
 * All of it that can fail gives a negative errno. Frames are told by where their buffers lie in the
 * memory of a port, so that no pointer leaves this file but that of the memory itself.
 */

#define _GNU_SOURCE
/* For `rte_eth_read_clock`, which stable interfaces have no other word for. */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_memzone.h>
#include <rte_version.h>

/* Frames that are taken at once, and buffers that one of 64 KiB takes: there are always so many,
 * for no driver is asked for more frames before those in pieces were copied. */
#define BURST 64
#define PIECES 33

/* Frames that may wait in the queue of a device to be sent. */
#define OUT_DESCRIPTORS 1024

/* The other side lays these out by the same rules and sizes. */
_Static_assert(RTE_ETH_NAME_MAX_LEN == 64, "names of devices");
_Static_assert(RTE_MAX_ETHPORTS <= 1024, "numbers of ports");

/* --- What DPDK says: kept until it is asked for. The newest goes when there is too much. --- */

static char said[8192];
static size_t said_len;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t say(void *cookie, const char *text, size_t len)
{
	pthread_mutex_lock(&said_lock);
	size_t room = sizeof(said) - said_len, n = len < room ? len : room;
	memcpy(said + said_len, text, n);
	said_len += n;
	pthread_mutex_unlock(&said_lock);
	return (ssize_t)len;
}

size_t weir_dpdk_said(char *into, size_t len)
{
	pthread_mutex_lock(&said_lock);
	size_t n = said_len < len ? said_len : len;
	memcpy(into, said, n);
	said_len = 0;
	pthread_mutex_unlock(&said_lock);
	return n;
}

/* --- The environment abstraction layer: one of a process, for good. --- */

/* The processors of the calling thread, of however many; NULL where the system does not say. */
static cpu_set_t *processors(size_t *bytes)
{
	for (int n = CPU_SETSIZE; n <= 1 << 20; n *= 2) {
		cpu_set_t *set = CPU_ALLOC(n);
		*bytes = CPU_ALLOC_SIZE(n);
		if (set == NULL || sched_getaffinity(0, *bytes, set) == 0)
			return set;
		CPU_FREE(set);
		if (errno != EINVAL)
			break;
	}
	return NULL;
}

/* What is printed goes nowhere until `print_again`: rows alone go there. -1: it can't be helped. */
static int print_nowhere(void)
{
	fflush(stdout);
	int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (before >= 0 && nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	if (nowhere >= 0)
		close(nowhere);
	return before;
}

static void print_again(int before)
{
	if (before < 0)
		return;
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
}

int weir_dpdk_start(int argc, char **argv)
{
	FILE *to = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = say });
	if (to == NULL)
		return -ENOMEM;
	setvbuf(to, NULL, _IOLBF, 256);
	rte_openlog_stream(to);
	/* It ties the thread that calls it to one processor, and so all threads that come of it. */
	size_t bytes = 0;
	cpu_set_t *all = processors(&bytes);
	/* It prints how it is used, where it does not like what it is told. */
	int before = print_nowhere();
	int got = rte_eal_init(argc, argv);
	int why = rte_errno;
	print_again(before);
	if (all != NULL) {
		sched_setaffinity(0, bytes, all);
		CPU_FREE(all);
	}
	/* It makes a folder even where it is to put nothing there. */
	rmdir(rte_eal_get_runtime_dir());
	return got < 0 ? -(why > 0 ? why : EINVAL) : 0;
}

bool weir_dpdk_has_huge_pages(void)
{
	return rte_eal_has_hugepages() != 0;
}

/* The processor that the calling thread is on. */
int weir_dpdk_processor(void)
{
	int at = sched_getcpu();
	return at < 0 ? -errno : at;
}

const char *weir_dpdk_version(void)
{
	return rte_version();
}

struct beside {
	void (*call)(void *);
	void *with;
};

static sem_t beside_done;
static struct beside beside_now;

static void run_beside(void *arg)
{
	beside_now.call(beside_now.with);
	sem_post(&beside_done);
}

/* Calls a function in the thread that DPDK waits for interrupts in. -ETIMEDOUT: it may be called
 * later still, and no other can be any more (-EBUSY). Once at a time. */
int weir_dpdk_beside(void (*call)(void *), void *with, unsigned int seconds)
{
	static bool late;
	struct timespec until;
	if (late)
		return -EBUSY;
	if (sem_init(&beside_done, 0, 0) != 0 || clock_gettime(CLOCK_REALTIME, &until) != 0)
		return -errno;
	until.tv_sec += seconds;
	beside_now = (struct beside){ .call = call, .with = with };
	int got = rte_eal_alarm_set(1, run_beside, NULL);
	if (got != 0)
		return got;
	while (sem_timedwait(&beside_done, &until) != 0) {
		if (errno != EINTR) {
			late = true;
			return -errno;
		}
	}
	return 0;
}

/* --- Devices. --- */

/* Ports that are there. */
int weir_dpdk_ports(uint16_t *ports, int most)
{
	int n = 0;
	uint16_t port;
	RTE_ETH_FOREACH_DEV(port)
		if (n < most)
			ports[n++] = port;
	return n;
}

int weir_dpdk_probe(const char *devargs)
{
	return rte_dev_probe(devargs);
}

struct weir_dpdk_about {
	char name[RTE_ETH_NAME_MAX_LEN];
	char device[RTE_ETH_NAME_MAX_LEN];
	char driver[RTE_ETH_NAME_MAX_LEN];
	uint32_t queues_max;
	uint32_t mtu_max;
	bool stamps;
};

static void copy_name(char *to, const char *from)
{
	snprintf(to, RTE_ETH_NAME_MAX_LEN, "%s", from == NULL ? "" : from);
}

int weir_dpdk_about(uint16_t port, struct weir_dpdk_about *about)
{
	struct rte_eth_dev_info info;
	int got = rte_eth_dev_info_get(port, &info);
	if (got != 0)
		return got;
	memset(about, 0, sizeof(*about));
	got = rte_eth_dev_get_name_by_port(port, about->name);
	if (got != 0)
		return got;
	copy_name(about->device, info.device == NULL ? NULL : rte_dev_name(info.device));
	copy_name(about->driver, info.driver_name);
	about->queues_max = info.max_rx_queues;
	about->mtu_max = info.max_mtu;
	about->stamps = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0;
	return 0;
}

struct weir_dpdk_wish {
	size_t memory;
	/* Buffers that batches may hold at least. */
	uint32_t lent_min;
	uint32_t descriptors;
	uint32_t mtu;
	uint16_t queues;
	bool promiscuous;
	bool stamps;
	/* Whether its driver switches flags of an interface of the kernel, which would stay so. */
	bool of_kernel;
	/* Whether frames are sent by it; if so, it may be that none are received (no queues). */
	bool sends;
};

struct weir_dpdk_port {
	uint8_t *memory;
	size_t bytes;
	struct rte_mempool *pool;
	uint32_t buffers;
	/* Of them, those that wait for frames in the rings of all queues or that are on their way. */
	uint32_t in_rings;
	/* Zero, or why it is not promiscuous. */
	int not_promiscuous;
	uint32_t mtu;
	uint16_t number;
	uint16_t queues;
	uint16_t descriptors;
	int stamp_at;
	/* The socket that keeps an interface of the kernel promiscuous, or -1. */
	int socket;
	uint64_t stamp_flag;
	/* Buffers for frames that are sent, if any are. */
	struct rte_mempool *out;
	uint32_t out_buffers;
	uint16_t out_descriptors;
};

static atomic_bool removed[RTE_MAX_ETHPORTS];

static int note_removal(uint16_t port, enum rte_eth_event_type event, void *arg, void *out)
{
	if (port < RTE_MAX_ETHPORTS)
		atomic_store(&removed[port], true);
	return 0;
}

bool weir_dpdk_is_removed(uint16_t port)
{
	return port < RTE_MAX_ETHPORTS && atomic_load(&removed[port]);
}

/* A pool of buffers whose memory is in one piece, with addresses within 4 GiB. */
static int make_pool(struct weir_dpdk_port *it, uint32_t buffers, int socket)
{
	static atomic_uint made;
	char name[RTE_MEMZONE_NAMESIZE];
	struct rte_pktmbuf_pool_private own = {
		.mbuf_data_room_size = RTE_MBUF_DEFAULT_BUF_SIZE,
	};
	unsigned int bytes = sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE;
	size_t page = 0, smallest = 0, align = 0;

	/* Where devices see the addresses of this process, buffers may lie across pages: small pages
	 * would hold one each else. */
	bool virtual = rte_eal_iova_mode() == RTE_IOVA_VA;
	snprintf(name, sizeof(name), "weir_%u", atomic_fetch_add(&made, 1));
	struct rte_mempool *pool = rte_mempool_create_empty(
		name, buffers, bytes, RTE_MEMPOOL_CACHE_MAX_SIZE / 2, sizeof(own), socket,
		virtual ? RTE_MEMPOOL_F_NO_IOVA_CONTIG : 0);
	if (pool == NULL)
		return -rte_errno;
	const struct rte_memzone *zone = NULL;
	int got = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (got != 0)
		goto failed;
	rte_pktmbuf_pool_init(pool, &own);
	got = rte_mempool_get_page_size(pool, &page);
	if (got != 0)
		goto failed;
	ssize_t need = rte_mempool_op_calc_mem_size_default(
		pool, buffers, page == 0 ? 0 : rte_bsf64(page), &smallest, &align);
	if (need < 0 || need > UINT32_MAX) {
		got = -E2BIG;
		goto failed;
	}
	zone = rte_memzone_reserve_aligned(name, need, socket, RTE_MEMZONE_SIZE_HINT_ONLY,
					   align > page ? align : page);
	if (zone == NULL) {
		got = -rte_errno;
		goto failed;
	}
	/* The zone stays where it is once frames came: batches may outlive the port. */
	got = virtual ? rte_mempool_populate_iova(pool, zone->addr, zone->iova, zone->len, NULL, NULL)
		      : rte_mempool_populate_virt(pool, zone->addr, zone->len, page, NULL, NULL);
	if (got < 0)
		goto failed;
	if (zone->len > UINT32_MAX || pool->populated_size < buffers) {
		got = -ENOMEM;
		goto failed;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	it->pool = pool;
	it->memory = zone->addr;
	it->bytes = zone->len;
	it->buffers = buffers;
	return 0;
failed:
	rte_mempool_free(pool);
	rte_memzone_free(zone);
	return got;
}

/* A pool of buffers for frames to be sent, each of which takes the longest in one piece: not all
 * drivers send several. There are always some besides those that wait in the queue of the device,
 * for drivers give them back a few at a time. */
static int make_out(struct weir_dpdk_port *it, uint16_t descriptors, int socket)
{
	static atomic_uint made;
	char name[RTE_MEMZONE_NAMESIZE];
	uint32_t room = RTE_PKTMBUF_HEADROOM + it->mtu + RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN;
	room = RTE_MAX(RTE_ALIGN(room, 128), (uint32_t)RTE_MBUF_DEFAULT_BUF_SIZE);
	if (room > UINT16_MAX)
		return -EMSGSIZE;
	snprintf(name, sizeof(name), "weir_out_%u", atomic_fetch_add(&made, 1));
	it->out_buffers = (uint32_t)descriptors + 4 * BURST;
	it->out_descriptors = descriptors;
	it->out = rte_pktmbuf_pool_create(name, it->out_buffers, 0, 0, (uint16_t)room, socket);
	return it->out == NULL ? -rte_errno : 0;
}

/* Gives a pool and its memory back, which nobody refers to. */
static void free_pool(struct weir_dpdk_port *it)
{
	rte_mempool_free(it->out);
	it->out = NULL;
	if (it->pool == NULL)
		return;
	const struct rte_memzone *zone = rte_memzone_lookup(it->pool->name);
	rte_mempool_free(it->pool);
	rte_memzone_free(zone);
	it->pool = NULL;
}

/* Configures a port with as few queues to send by and to receive by as are wished and as its driver
 * takes: some take no port without one, or without as many to send by as it has to receive. A port
 * that sends has one at least, and none is asked for without any: DPDK takes that as the driver's
 * own numbers, which nobody would set up. */
static int configure(uint16_t port, const struct rte_eth_dev_info *info, uint16_t *receivers,
		     uint16_t *senders, struct rte_eth_conf *conf)
{
	const uint16_t rx[] = { *receivers, 1 }, tx[] = { *senders, 1, *receivers };
	const uint32_t mtus[] = { conf->rxmode.mtu, RTE_ETHER_MTU };
	const bool sends = *senders > 0;
	int got = -ENOTSUP;
	for (size_t k = 0; k < (*receivers == 0 ? RTE_DIM(rx) : 1); k++) {
		for (size_t i = 0; i < RTE_DIM(tx); i++) {
			uint16_t most = RTE_MIN(tx[i], info->max_tx_queues);
			if (most == 0 && (sends || rx[k] == 0))
				continue;
			for (size_t j = 0; j < RTE_DIM(mtus); j++) {
				conf->rxmode.mtu = mtus[j];
				got = rte_eth_dev_configure(port, rx[k], most, conf);
				if (got != 0)
					continue;
				*receivers = rx[k];
				*senders = most;
				return 0;
			}
		}
	}
	return got;
}

/* Starts a port whose driver switches IFF_PROMISC of an interface of the kernel: off, when it is
 * started, whoever had set it, and on for good. So what was set is set again, and what is wanted
 * is wanted by a socket: the kernel counts those who do, as long as they live. */
static int start_of_kernel(struct weir_dpdk_port *it, int index, bool promiscuous)
{
	struct packet_mreq wanted = { .mr_ifindex = index, .mr_type = PACKET_MR_PROMISC };
	struct ifreq before = { 0 }, now = { 0 };
	int got;

	it->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (it->socket < 0)
		return -errno;
	if (if_indextoname(index, before.ifr_name) == NULL ||
	    ioctl(it->socket, SIOCGIFFLAGS, &before) != 0)
		return -errno;
	/* First, so that there is no moment in which it is not. */
	if (promiscuous && setsockopt(it->socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &wanted,
				      sizeof(wanted)) != 0)
		it->not_promiscuous = -errno;
	got = rte_eth_dev_start(it->number);
	memcpy(now.ifr_name, before.ifr_name, sizeof(now.ifr_name));
	if (ioctl(it->socket, SIOCGIFFLAGS, &now) == 0 &&
	    ((before.ifr_flags ^ now.ifr_flags) & IFF_PROMISC) != 0) {
		now.ifr_flags ^= IFF_PROMISC;
		if (ioctl(it->socket, SIOCSIFFLAGS, &now) != 0 && got == 0)
			got = -errno;
	}
	return got;
}

/* Switches a port off; its memory stays, for batches may refer to it. */
void weir_dpdk_close(struct weir_dpdk_port *it)
{
	rte_eth_dev_stop(it->number);
	rte_eth_dev_close(it->number);
	if (it->socket >= 0)
		close(it->socket);
	it->socket = -1;
}

/* Switches a port on as it is wished, as far as it can. `step` says where it failed; a port that
 * was to be set up is closed then. */
int weir_dpdk_open(uint16_t port, const struct weir_dpdk_wish *wish, struct weir_dpdk_port *it,
		   int *step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	int got;

	memset(it, 0, sizeof(*it));
	memset(&conf, 0, sizeof(conf));
	it->number = port;
	it->stamp_at = -1;
	it->socket = -1;
	*step = 0;
	got = rte_eth_dev_info_get(port, &info);
	if (got != 0)
		return got;

	uint16_t queues = RTE_MIN(wish->queues, info.max_rx_queues);
	uint64_t hash = info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP |
						       RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP);
	if (queues > 1 && hash != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = hash;
	}
	conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (wish->stamps)
		conf.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	/* Frames that take several buffers are only let in where the device can cut them. */
	bool cuts = (conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
	uint32_t mtu = cuts || wish->queues == 0 ? wish->mtu : RTE_ETHER_MTU;
	mtu = RTE_MIN(mtu, (uint32_t)(info.max_mtu == 0 ? RTE_ETHER_MTU : info.max_mtu));
	conf.rxmode.mtu = RTE_MAX(mtu, (uint32_t)info.min_mtu);

	/* Drivers that can tell of a device that was taken away do so if they are asked to. */
	if (info.dev_flags != NULL && (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0)
		conf.intr_conf.rmv = 1;

	*step = 1;
	if ((wish->sends && info.max_tx_queues == 0) ||
	    (wish->queues > 0 && queues == 0)) {
		got = -ENOTSUP;
		goto failed;
	}
	/* Where nothing is to be received, its driver may want a queue for that all the same: what
	 * comes there stays, and is lost when it is full. */
	uint16_t receivers = queues, senders = wish->sends ? 1 : 0;
	got = configure(port, &info, &receivers, &senders, &conf);
	if (got != 0)
		goto failed;
	it->mtu = conf.rxmode.mtu;
	it->queues = queues;

	uint16_t rx = RTE_MIN(wish->descriptors, UINT16_MAX);
	uint16_t tx = wish->sends ? OUT_DESCRIPTORS : RTE_ETH_DEV_FALLBACK_TX_RINGSIZE;
	got = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (got != 0)
		goto failed;

	/* As much memory as is asked for, and as it takes at least. */
	*step = 2;
	int socket = rte_eth_dev_socket_id(port);
	uint32_t each = rte_mempool_calc_obj_size(
		sizeof(struct rte_mbuf) + RTE_MBUF_DEFAULT_BUF_SIZE, 0, NULL);
	uint32_t margin = 2 * RTE_MEMPOOL_CACHE_MAX_SIZE + BURST * PIECES;
	uint32_t rings = (uint32_t)rx * receivers;
	uint64_t buffers = wish->memory / each;
	buffers = RTE_MAX(buffers, (uint64_t)rings + margin + wish->lent_min);
	if (buffers > UINT32_MAX / each)
		buffers = UINT32_MAX / each;
	if (receivers > 0)
		got = make_pool(it, (uint32_t)buffers, socket < 0 ? SOCKET_ID_ANY : socket);
	if (got == 0 && wish->sends)
		got = make_out(it, tx, socket < 0 ? SOCKET_ID_ANY : socket);
	if (got != 0)
		goto failed;
	it->in_rings = rings + margin;
	it->descriptors = rx;

	*step = 3;
	if (wish->stamps) {
		got = rte_mbuf_dyn_rx_timestamp_register(&it->stamp_at, &it->stamp_flag);
		if (got != 0)
			goto failed;
	}
	struct rte_eth_rxconf rxconf = info.default_rxconf;
	rxconf.offloads = conf.rxmode.offloads;
	for (uint16_t queue = 0; queue < receivers; queue++) {
		got = rte_eth_rx_queue_setup(port, queue, rx, socket, &rxconf, it->pool);
		if (got != 0)
			goto failed;
	}
	for (uint16_t queue = 0; queue < senders; queue++) {
		got = rte_eth_tx_queue_setup(port, queue, tx, socket, NULL);
		if (got != 0)
			goto failed;
	}
	atomic_store(&removed[port], false);
	/* Few drivers tell of it. */
	rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RMV, note_removal, NULL);
	*step = 4;
	if (wish->of_kernel)
		got = start_of_kernel(it, (int)info.if_index, wish->promiscuous);
	else
		got = rte_eth_dev_start(port);
	if (got != 0)
		goto failed;
	if (!wish->of_kernel)
		it->not_promiscuous = wish->promiscuous ? rte_eth_promiscuous_enable(port)
							: rte_eth_promiscuous_disable(port);
	return 0;
failed:
	/* No frame was handed out: what it has can go. */
	weir_dpdk_close(it);
	free_pool(it);
	return got;
}

struct weir_dpdk_counts {
	uint64_t received;
	/* Frames for which the rings of the device had no room. */
	uint64_t missed;
	/* Frames that were faulty. */
	uint64_t errors;
	/* How often there was no buffer. */
	uint64_t no_buffer;
};

_Static_assert(sizeof(struct weir_dpdk_counts) == 32, "counts");

int weir_dpdk_counts(uint16_t port, struct weir_dpdk_counts *counts)
{
	struct rte_eth_stats stats;
	int got = rte_eth_stats_get(port, &stats);
	if (got == 0)
		*counts = (struct weir_dpdk_counts){ stats.ipackets, stats.imissed, stats.ierrors,
						     stats.rx_nombuf };
	return got;
}

/* Frames that the port has sent, and such as it took and did not send. */
int weir_dpdk_sent(uint16_t port, uint64_t *sent, uint64_t *failed)
{
	struct rte_eth_stats stats;
	int got = rte_eth_stats_get(port, &stats);
	if (got == 0) {
		*sent = stats.opackets;
		*failed = stats.oerrors;
	}
	return got;
}

/* Whether the link is up; negative where the device does not say. */
int weir_dpdk_link(uint16_t port)
{
	struct rte_eth_link link;
	int got = rte_eth_link_get_nowait(port, &link);
	return got != 0 ? got : link.link_status == RTE_ETH_LINK_UP;
}

/* The device's own clock, in ticks of its own. */
int weir_dpdk_clock(uint16_t port, uint64_t *ticks)
{
	return rte_eth_read_clock(port, ticks);
}

/* --- Frames. --- */

#define WEIR_DPDK_APART UINT32_MAX
#define TAGS_OFF (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_QINQ_STRIPPED)

struct weir_dpdk_frame {
	uint64_t stamp;
	/* Where its buffer is in the memory of the port. */
	uint32_t buffer;
	/* Where its bytes are, if they are in one piece there; else WEIR_DPDK_APART. */
	uint32_t bytes;
	uint32_t len;
	bool has_stamp;
};

/* Numbers that a test has, too. */
_Static_assert(RTE_MBUF_F_RX_VLAN_STRIPPED == 1 << 6, "a tag");
_Static_assert(RTE_MBUF_F_RX_QINQ_STRIPPED == 1 << 15, "two tags");
_Static_assert(RTE_PTYPE_L2_ETHER_VLAN == 6 && RTE_PTYPE_L2_ETHER_QINQ == 7, "tags");
_Static_assert(sizeof(struct weir_dpdk_frame) == 24, "a frame");
_Static_assert(sizeof(struct weir_dpdk_about) == 204, "what is known of a port");
_Static_assert(sizeof(struct weir_dpdk_wish) == 32, "a wish");
_Static_assert(sizeof(struct weir_dpdk_port) == 80, "a port");

static bool within(const struct weir_dpdk_port *it, const void *at, size_t len)
{
	uintptr_t start = (uintptr_t)it->memory, p = (uintptr_t)at;
	return p >= start && p - start <= it->bytes && len <= it->bytes - (p - start);
}

/* The protocol of the outermost of the tags that were taken off a frame. Of two it is 802.1ad, as
 * DPDK has it. Of one nothing says it but the driver, where it tells by which tag the frame began:
 * if that is one of 802.1ad, it is the one that is missing, unless one is there still. */
uint16_t weir_dpdk_tag_type(uint64_t flags, uint32_t packet_type, uint16_t type_left)
{
	bool began_so = (packet_type & RTE_PTYPE_L2_MASK) == RTE_PTYPE_L2_ETHER_QINQ;
	bool two = (flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0;
	return two || (began_so && type_left != RTE_ETHER_TYPE_QINQ) ? RTE_ETHER_TYPE_QINQ
								       : RTE_ETHER_TYPE_VLAN;
}

/* Puts tags back that the device took off; whether there was room before the frame, and the buffer
 * is one's own. */
static bool restore_tags(struct rte_mbuf *m)
{
	uint64_t flags = m->ol_flags;
	uint32_t packet_type = m->packet_type;
	uint16_t outer = m->vlan_tci_outer;
	if (m->data_len < RTE_ETHER_HDR_LEN)
		return false;
	struct rte_ether_hdr *header = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	uint16_t left = rte_be_to_cpu_16(header->ether_type);
	if ((flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && rte_vlan_insert(&m) != 0)
		return false;
	if ((flags & RTE_MBUF_F_RX_QINQ_STRIPPED) != 0) {
		m->vlan_tci = outer;
		if (rte_vlan_insert(&m) != 0)
			return false;
	}
	header = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	header->ether_type = rte_cpu_to_be_16(weir_dpdk_tag_type(flags, packet_type, left));
	m->ol_flags &= ~RTE_MBUF_F_RX_QINQ_STRIPPED;
	return true;
}

/* Takes up to `most` frames of a queue, no more after one in pieces. Frames in buffers that are
 * not the port's, and those whose tags can't be put back, are let go and counted in `unread`. */
uint16_t weir_dpdk_receive(const struct weir_dpdk_port *it, uint16_t queue,
			   struct weir_dpdk_frame *frames, uint16_t most, uint64_t *unread)
{
	struct rte_mbuf *got[BURST];
	uint16_t n = 0, taken = 0;
	bool apart = false;
	while (taken < most && !apart) {
		uint16_t ask = RTE_MIN(most - taken, (int)RTE_DIM(got));
		uint16_t came = rte_eth_rx_burst(it->number, queue, got, ask);
		for (uint16_t i = 0; i < came; i++) {
			struct rte_mbuf *m = got[i];
			bool own = m->pool == it->pool && within(it, m, sizeof(*m));
			if (!own || ((m->ol_flags & TAGS_OFF) != 0 && !restore_tags(m))) {
				*unread += 1;
				rte_pktmbuf_free(m);
				continue;
			}
			const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);
			bool whole = m->nb_segs == 1 && within(it, at, m->pkt_len);
			apart |= !whole;
			bool stamped = it->stamp_at >= 0 && (m->ol_flags & it->stamp_flag) != 0;
			frames[n++] = (struct weir_dpdk_frame){
				.stamp = stamped ? *RTE_MBUF_DYNFIELD(m, it->stamp_at,
								      rte_mbuf_timestamp_t *)
						 : 0,
				.buffer = (uint32_t)((uintptr_t)m - (uintptr_t)it->memory),
				.bytes = whole ? (uint32_t)(at - it->memory) : WEIR_DPDK_APART,
				.len = m->pkt_len,
				.has_stamp = stamped,
			};
		}
		taken += came;
		if (came < ask)
			break;
	}
	return n;
}

static struct rte_mbuf *buffer_at(const struct weir_dpdk_port *it, uint32_t at)
{
	return (struct rte_mbuf *)(void *)(it->memory + at);
}

/* Copies the first `len` bytes of a frame, in however many pieces it is; how many there were. */
uint32_t weir_dpdk_copy(const struct weir_dpdk_port *it, uint32_t buffer, uint8_t *to, uint32_t len)
{
	uint32_t done = 0;
	for (const struct rte_mbuf *m = buffer_at(it, buffer); m != NULL && done < len; m = m->next) {
		uint32_t n = RTE_MIN((uint32_t)m->data_len, len - done);
		memcpy(to + done, rte_pktmbuf_mtod(m, const uint8_t *), n);
		done += n;
	}
	return done;
}

/* Gives buffers back, each of which was received and not given back since. */
void weir_dpdk_release(const struct weir_dpdk_port *it, const uint32_t *buffers, size_t n)
{
	struct rte_mbuf *all[64];
	for (size_t i = 0; i < n;) {
		unsigned int m = 0;
		while (m < RTE_DIM(all) && i < n)
			all[m++] = buffer_at(it, buffers[i++]);
		rte_pktmbuf_free_bulk(all, m);
	}
}

/* Bytes somewhere, of this process. */
struct weir_dpdk_bytes {
	const uint8_t *at;
	size_t len;
};

/* Sends copies of frames, which fit into the buffers of the port; how many of them, from the first,
 * the device took. */
uint16_t weir_dpdk_send(const struct weir_dpdk_port *it, const struct weir_dpdk_bytes *frames,
			uint16_t n)
{
	struct rte_mbuf *all[BURST];
	uint16_t made = 0;
	n = RTE_MIN(n, BURST);
	while (made < n) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(it->out);
		if (m == NULL)
			break;
		char *to = frames[made].len > UINT16_MAX ? NULL
				: rte_pktmbuf_append(m, (uint16_t)frames[made].len);
		if (to == NULL) {
			rte_pktmbuf_free(m);
			break;
		}
		memcpy(to, frames[made].at, frames[made].len);
		all[made++] = m;
	}
	if (made == 0) {
		/* Drivers give buffers back when they are called, and have all of them: those whose
		 * frames have left are asked for, in one of two ways. */
		if (rte_eth_tx_done_cleanup(it->number, 0, 0) < 0)
			rte_eth_tx_burst(it->number, 0, all, 0);
		return 0;
	}
	uint16_t took = rte_eth_tx_burst(it->number, 0, all, made);
	/* Those are this function's still. */
	for (uint16_t i = took; i < made; i++)
		rte_pktmbuf_free(all[i]);
	return took;
}
