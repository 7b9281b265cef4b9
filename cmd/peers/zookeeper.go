package main

import (
	"context"

	"github.com/go-zookeeper/zk"
)

// zooKeeperLocker is the lock recipe of ZooKeeper's Go client.
type zooKeeperLocker struct{ conn *zk.Conn }

func openZooKeeper(ctx context.Context, addrs []string) (locker, error) {
	conn, _, err := zk.Connect(addrs, lease, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, conn.Close) // the recipe takes no context
	return zooKeeperLocker{conn}, nil
}

func (z zooKeeperLocker) lock(_ context.Context, key string) (func() error, error) {
	l := zk.NewLock(z.conn, "/bench/"+key, zk.WorldACL(zk.PermAll))
	if err := l.Lock(); err != nil {
		return nil, err
	}
	return l.Unlock, nil
}
