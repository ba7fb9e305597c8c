#!/bin/busybox sh
# The guest's first process. Its root is the host's /, seen through 9p and read-only, below an overlay in memory: what is
# changed inside goes with the guest. /share alone is the host's, both ways: `command` is run there, and its `stdout`,
# `stderr` and `code` are left there; the paths in `visible` are shown although they lie below a folder of our own.
B=/bin/busybox
P9=trans=virtio,version=9p2000.L,msize=262144

$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
for module in /modules/*.ko; do $B insmod "$module" || echo "insmod $module failed"; done

# cache=loose: nobody changes the host's files behind our back for as long as a guest lives.
$B mount -t 9p -o "$P9,ro,cache=loose" host /lower || echo "no 9p root"
$B mount -t tmpfs -o mode=755 tmpfs /upper
$B mkdir -p /upper/files /upper/work
$B mount -t overlay -o lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work overlay /root || echo "no overlay"

cd /root || exit
$B mkdir -p proc sys dev tmp run share
$B mount -t proc proc proc
$B mount -t sysfs sys sys
$B mount -t devtmpfs dev dev
$B mkdir -p dev/shm dev/pts
$B mount -t tmpfs tmpfs dev/shm
$B mount -t devpts devpts dev/pts
$B ln -sf /proc/self/fd dev/fd
$B mount -t tmpfs tmpfs tmp
$B mount -t tmpfs tmpfs run
$B mkdir -p run/lock
$B mount -t tracefs none sys/kernel/tracing
$B mount -t cgroup2 none sys/fs/cgroup
$B mount -t 9p -o "$P9,rw,cache=none" share share || echo "no share"

while read -r path; do
  [ -e "/root$path" ] && continue
  $B mkdir -p "/root$path"
  $B mount -o bind "/lower$path" "/root$path"
done < share/visible

export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8
$B setsid $B chroot /root /bin/bash -c 'cd /share && exec /bin/bash command' < /dev/null > share/stdout 2> share/stderr
echo $? > share/code
$B sync
$B poweroff -f
