package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease is what each system is asked for: long enough never to end in the loop.
const lease = 30 * time.Second

// redisPoll is the pause before a busy key is tried again: Redis has no queue.
const redisPoll = time.Millisecond

// compareAndDelete gives a lock back only to who holds it.
var compareAndDelete = redis.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// redisLocker is the usual lock on one Redis: SET NX PX with a random value,
// released by a script that compares and deletes.
type redisLocker struct{ client *redis.Client }

func openRedis(_ context.Context, addrs []string) (locker, error) {
	return redisLocker{redis.NewClient(&redis.Options{Addr: addrs[0], PoolSize: 1})}, nil
}

func (r redisLocker) lock(ctx context.Context, key string) (func() error, error) {
	value := rand.Text()
	for {
		ok, err := r.client.SetNX(ctx, key, value, lease).Result()
		if err != nil {
			return nil, err
		}
		if ok {
			break
		}
		time.Sleep(redisPoll)
	}
	return func() error { return compareAndDelete.Run(ctx, r.client, []string{key}, value).Err() }, nil
}
