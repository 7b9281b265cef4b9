package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/control"
	"github.com/ticketing-io/ticketing/core/link"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/service"
)

const (
	// readyLook is the time between two looks at whether the node can open its port.
	readyLook = 10 * time.Millisecond
	// handOverPatience bounds how long a node that stops tries to give its leadership
	// away: two elections' time. What is left of the stop's time is for its clients.
	handOverPatience = 3 * time.Second
)

// cluster is what a cluster's node has besides: the link to the others, its replica, and
// the endpoints by which it is asked and told.
type cluster struct {
	log     *slog.Logger
	link    *link.Link
	replica *replica.Replica
	pool    *control.Pool
	control *control.Server
	ctx     context.Context // ends when the node stops
	cancel  context.CancelFunc
	ended   chan error // what the control server returned
}

// newCluster opens the link and takes the data folder. fail is told when the node can't
// go on.
func newCluster(ctx context.Context, cfg config.Config, log *slog.Logger, fail func(error), observer replica.Observer) (*cluster, error) {
	c := &cluster{log: log, ended: make(chan error, 1)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	one := cfg.Cluster
	var err error
	c.link, err = link.Listen(ctx, link.Config{
		NodeID: one.NodeID, Listen: one.Listen, TLS: linkFiles(cfg), Insecure: cfg.Insecure, Logger: log,
		Refuse: c.isRemoved,
	})
	if err != nil {
		c.cancel()
		return nil, err
	}
	dial := func(ctx context.Context, addr, id string) (net.Conn, error) {
		return c.link.Dial(ctx, link.Control, addr, id)
	}
	c.pool = control.NewPool(dial)
	o := replicaOptions(cfg, c, log, fail)
	o.Observer = observer
	c.replica, err = replica.New(o)
	if err != nil {
		c.cancel()
		return nil, errors.Join(err, c.link.Close())
	}
	c.control = control.NewServer(clusterNode{c}, c.pool, log)
	return c, nil
}

func linkFiles(cfg config.Config) link.Files {
	return link.Files{Cert: cfg.Cluster.Cert, Key: cfg.Cluster.Key, CA: cfg.Cluster.CA}
}

// replicaOptions is a replica's configuration.
func replicaOptions(cfg config.Config, c *cluster, log *slog.Logger, fail func(error)) replica.Options {
	one := cfg.Cluster
	o := replica.Options{
		NodeID: one.NodeID, DataDir: one.DataDir, Logger: log, Fatal: fail,
		Self: replica.Member{ID: one.NodeID, Raft: c.link.Addr().String(), Client: cfg.Advertise},
		Timers: replica.Timers{
			Heartbeat: one.Heartbeat, Election: one.Election, LeaderLease: one.LeaderLease,
			SnapshotInterval: one.SnapshotInterval, SnapshotThreshold: uint64(one.SnapshotThreshold),
		},
		Link: c.link, Ask: c.ask,
	}
	for _, m := range one.Members {
		member := replica.Member{ID: m.ID, Raft: m.Raft, Client: m.Client, Admin: m.Admin}
		o.Members = append(o.Members, member)
		if m.ID == one.NodeID {
			o.Self = member
		}
	}
	return o
}

// isRemoved tells the link whether a node was removed.
func (c *cluster) isRemoved(id string) bool { return c.replica != nil && c.replica.IsRemoved(id) }

// ask asks another node about itself.
func (c *cluster) ask(ctx context.Context, m replica.Member) (replica.Peer, error) {
	st, err := c.pool.At(m.Raft, m.ID).Status(ctx)
	if err != nil {
		return replica.Peer{}, err
	}
	return replica.Peer{
		ID: st.Self.ID, Storage: replica.Storage(st.Disk), List: st.List, Voters: st.Voters,
		Applied: st.Applied, Supports: st.Supports, Client: st.Self.Client, Admin: st.Self.Admin,
	}, nil
}

// start lets the node take part.
func (c *cluster) start(s *service.Service) {
	go func() { c.ended <- c.control.Serve(c.link.Control()) }()
	c.replica.Start(s)
}

// awaitReady returns when the node serves or knows who does; false when it stops first.
func (c *cluster) awaitReady() bool {
	tick := time.NewTicker(readyLook)
	defer tick.Stop()
	for {
		if c.ready() == nil {
			return true
		}
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return false
		}
	}
}

func (c *cluster) ready() error {
	if st := c.replica.Status(); !st.Ready {
		return errors.New(st.Why)
	}
	return nil
}

func (c *cluster) reload(cfg config.Config) error { return c.link.Reload(linkFiles(cfg)) }

// handOver gives the leadership away.
func (c *cluster) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handOverPatience)
	defer cancel()
	c.replica.HandOver(ctx)
}

// close ends the node's part in the cluster.
func (c *cluster) close(ctx context.Context) error {
	c.cancel()
	err := c.control.Close(ctx)
	if replicaErr := c.replica.Close(ctx); replicaErr != nil {
		err = errors.Join(err, replicaErr)
	}
	c.pool.Close()
	err = errors.Join(err, c.link.Close())
	if serveErr := <-c.ended; serveErr != nil {
		err = errors.Join(err, serveErr)
	}
	if err != nil {
		return fmt.Errorf("leave the cluster: %w", err)
	}
	return nil
}
