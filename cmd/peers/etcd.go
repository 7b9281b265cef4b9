package main

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcdDialTimeout bounds the first connection to an etcd, in seconds.
const etcdDialTimeout = 5 * time.Second

// etcdLocker is etcd's own mutex, on one session (an etcd lease) a worker.
type etcdLocker struct{ session *concurrency.Session }

func openEtcd(_ context.Context, addrs []string) (locker, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: addrs, DialTimeout: etcdDialTimeout})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(lease.Seconds())))
	return etcdLocker{session}, err
}

func (e etcdLocker) lock(ctx context.Context, key string) (func() error, error) {
	mutex := concurrency.NewMutex(e.session, "/bench/"+key)
	if err := mutex.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return mutex.Unlock(ctx) }, nil
}
