/* SPDX-License-Identifier: GPL-2.0 */
/* From a descriptor to the object behind it: a pipe, a socket, an event counter, a file. */

/* The number of an object. A new one is announced; `renew` forgets what was at its place. */
static __always_inline u64 number_of(struct object_key *key, u64 inode, u64 peer, bool renew)
{
	u64 id, *known = renew ? NULL : bpf_map_lookup_elem(&objects, key);

	if (known)
		return *known;
	id = __sync_fetch_and_add(&latest_object, 1) + 1;
	bpf_map_update_elem(&objects, key, &id, BPF_ANY);
	emit(EVENT_OBJECT, current_tid(), id, key->class | inode << 8, peer);
	return id;
}

static __always_inline u32 anonymous_class(struct file *file)
{
	char name[8] = {};
	const unsigned char *at = BPF_CORE_READ(file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel_str(name, sizeof(name), at);
	if (name[0] != '[')
		return CLASS_ANONYMOUS;
	if (name[1] == 'e' && name[6] == 'f')
		return CLASS_EVENTFD;
	if (name[1] == 'e' && name[6] == 'p')
		return CLASS_EPOLL;
	if (name[1] == 't')
		return CLASS_TIMERFD;
	if (name[1] == 's')
		return CLASS_SIGNALFD;
	return name[1] == 'p' && name[2] == 'i' ? CLASS_PIDFD : CLASS_ANONYMOUS;
}

/* The type of a socket, where its object's peer has it. */
static __always_inline u64 type_of(struct socket *socket)
{
	return (u64)(u8)BPF_CORE_READ(socket, type) << 56;
}

static __always_inline u64 unix_peer(struct sock *sk)
{
	struct unix_sock *from = (struct unix_sock *)sk;
	struct sock *to = BPF_CORE_READ(from, peer);
	struct socket *socket = to ? BPF_CORE_READ(to, sk_socket) : NULL;
	struct file *file = socket ? BPF_CORE_READ(socket, file) : NULL;
	struct object_key key = { .class = CLASS_UNIX_SOCKET };

	if (!file)
		return 0;
	key.where = BPF_CORE_READ(file, f_inode, i_ino);
	key.device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
	return number_of(&key, key.where, type_of(socket), false);
}

static __always_inline void socket_key(struct file *file, struct object_key *key, u64 *peer,
				       bool renew)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	u16 family = sk ? BPF_CORE_READ(sk, __sk_common.skc_family) : 0;

	key->class = CLASS_SOCKET;
	if (family == 1) {
		key->class = CLASS_UNIX_SOCKET;
		if (renew || !bpf_map_lookup_elem(&objects, key))
			*peer = unix_peer(sk) | type_of(socket);
	} else if (family == 2 || family == 10) {
		key->class = CLASS_INTERNET_SOCKET;
		*peer = (u64)BPF_CORE_READ(sk, __sk_common.skc_num) << 16 |
			bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)) | type_of(socket);
	}
}

/* Not every header of types has it. */
struct eventfd_ctx___here {
	u64 count;
	unsigned int flags;
} __attribute__((preserve_access_index));

/* Whether an event counter is a semaphore, and twice its count. */
static __always_inline u64 counter_of(struct file *file)
{
	struct eventfd_ctx___here *counter = BPF_CORE_READ(file, private_data);

	return (BPF_CORE_READ(counter, flags) & 1) | BPF_CORE_READ(counter, count) << 1;
}

/* The object of an open file, in full. */
static __always_inline u64 object_of(struct file *file, struct inode *inode, u64 number, u32 renew)
{
	struct object_key key = { .where = number };
	u32 type = BPF_CORE_READ(inode, i_mode) & 0170000;
	u32 magic = BPF_CORE_READ(inode, i_sb, s_magic);
	u64 peer = 0;

	key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (magic == ANON_INODE_MAGIC) {
		/* One inode serves them all: the open file is the object. */
		key.where = (u64)file;
		key.class = anonymous_class(file);
		if (key.class == CLASS_EVENTFD)
			peer = counter_of(file);
	} else if (magic == PIDFS_MAGIC) {
		key.class = CLASS_PIDFD;
	} else if (type == 0140000) {
		socket_key(file, &key, &peer, renew);
	} else if (type == 0010000) {
		key.class = CLASS_PIPE;
	} else {
		key.class = type == 0020000 || type == 0060000 ? CLASS_DEVICE : CLASS_FILE;
		if (key.class == CLASS_FILE)
			peer = key.device;
		else if (type == 0060000)
			peer = DISK | BPF_CORE_READ(inode, i_rdev);
		renew = 0;
	}
	if (renew)
		__sync_fetch_and_add(&generation, 1);
	return number_of(&key, number, peer, renew);
}

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/*
 * The file of a descriptor, its inode and that one's number. Since Linux 6.2 a load from an address
 * is an instruction; before, it is a call of a helper.
 */
static __always_inline struct file *open_file(struct fdtable *table, u32 fd, struct inode **inode,
					      u64 *number)
{
	const void *at = (const void *)((u64)table->fd + fd * 8ULL);
	struct file *file = NULL;

	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		/* A structure of one pointer. */
		struct hlist_head *slot =
			bpf_rdonly_cast(at, bpf_core_type_id_kernel(struct hlist_head));

		file = bpf_rdonly_cast(slot->first, bpf_core_type_id_kernel(struct file));
		if (!file)
			return NULL;
		*inode = file->f_inode;
		*number = (*inode)->i_ino;
		return file;
	}
	bpf_probe_read_kernel(&file, sizeof(file), at);
	if (!file)
		return NULL;
	*inode = BPF_CORE_READ(file, f_inode);
	*number = BPF_CORE_READ(*inode, i_ino);
	return file;
}

static __noinline u64 resolve(u32 fd, u32 renew)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	struct file *file = NULL;
	struct resolved *known;
	struct inode *inode;
	u64 object, number, now = generation;
	u32 place;

	if (fd >= table->max_fds)
		return 0;
	file = open_file(table, fd, &inode, &number);
	if (!file)
		return 0;
	/* Slabs align files to 64 bytes and more. */
	place = ((u64)file >> 6 ^ (u64)file >> 15) & (RESOLVED - 1);
	known = bpf_map_lookup_elem(&resolved_files, &place);
	if (!known)
		return object_of(file, inode, number, renew);
	if (!renew && known->file == (u64)file && known->inode == (u64)inode &&
	    known->number == number && known->generation == now)
		return known->object;
	object = object_of(file, inode, number, renew);
	known->file = (u64)file;
	known->inode = (u64)inode;
	known->number = number;
	known->generation = now;
	known->object = object;
	return object;
}

/* A socket has got its ports: it is announced again, with the same number. */
static __noinline int connects(u32 fd, u64 object)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	struct object_key key = {};
	struct file *file = NULL;
	u64 peer = 0;

	if (!object || fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (const void *)((u64)table->fd + fd * 8ULL));
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & 0170000) != 0140000)
		return 0;
	socket_key(file, &key, &peer, false);
	if (key.class == CLASS_INTERNET_SOCKET)
		emit(EVENT_OBJECT, current_tid(), object,
		     key.class | (u64)BPF_CORE_READ(file, f_inode, i_ino) << 8, peer);
	return 0;
}

/*
 * Two connected Unix sockets name the address of the one that was accepted: that of the listening
 * socket. It is an object of its own, so that no address of the kernel's is in a recording.
 */
static __noinline int connected_at(u32 fd, u32 accepts)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct object_key key = { .device = ~0, .class = CLASS_UNIX_SOCKET };
	struct fdtable *table = task->files->fdt;
	struct file *file = NULL;
	struct socket *socket;
	struct sock *sk;

	if (fd >= table->max_fds)
		return 0;
	bpf_probe_read_kernel(&file, sizeof(file), (const void *)((u64)table->fd + fd * 8ULL));
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & 0170000) != 0140000)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (!sk || BPF_CORE_READ(sk, __sk_common.skc_family) != 1)
		return 0;
	if (!accepts)
		sk = BPF_CORE_READ((struct unix_sock *)sk, peer);
	key.where = sk ? (u64)BPF_CORE_READ((struct unix_sock *)sk, addr) : 0;
	if (key.where)
		emit(EVENT_MEMBER, current_tid(), 0, number_of(&key, 0, 0, false), 19ULL << 32);
	return 0;
}
