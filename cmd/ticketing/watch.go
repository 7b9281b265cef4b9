package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ticketing-io/ticketing/admin"
	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/node"
	"github.com/ticketing-io/ticketing/telemetry"
	"github.com/ticketing-io/ticketing/telemetry/metrics"
)

// watchEndTime bounds how long the last traces and scrapes may take, when the node has
// stopped: a collector that hangs must not hold a restart up.
const watchEndTime = 2 * time.Second

// watch is what a server is watched by: its telemetry, and the admin server that shows it.
type watch struct {
	log          *slog.Logger
	telemetry    *telemetry.Telemetry
	admin        *admin.Server // nil when it could not listen
	served       chan struct{} // closed when admin has ended
	config       atomic.Pointer[config.Config]
	certificates atomic.Pointer[[]metrics.Certificate]
}

func newWatch(ctx context.Context, cfg config.Config, env func(string) (string, bool), stdout io.Writer, log *slog.Logger) (*watch, error) {
	v := thisVersion()
	t, err := telemetry.Setup(ctx, telemetry.Config{Node: cfg, Version: v.Version, Revision: v.Revision, Env: env, Console: stdout, Logger: log})
	if err != nil {
		return nil, err
	}
	w := &watch{log: log, telemetry: t, served: make(chan struct{})}
	w.reloaded(cfg)
	return w, nil
}

// start lets a node be looked at. Where nobody chose the address, a server goes on without
// one that is taken: its locks are worth more.
func (w *watch) start(ctx context.Context, n *node.Node, cfg config.Config) error {
	ready := func() error {
		if n.ServiceStats().Draining {
			return errors.New("the node stops")
		}
		return n.Ready()
	}
	sources := metrics.Sources{
		Service: n.ServiceStats, Server: n.ServerStats, Ready: ready,
		ConfigHash:   func() string { return w.config.Load().Hash() },
		Certificates: func() []metrics.Certificate { return *w.certificates.Load() },
	}
	if cfg.Clustered() {
		sources.Replica = n.ReplicaStats
	}
	w.telemetry.Watch(sources)
	listener, err := admin.Listen(ctx, cfg.Admin.Listen)
	switch {
	case err == nil:
	case errors.Is(err, admin.ErrExposed), !cfg.AdminChosen():
		w.log.Warn("metrics and health are not served", "error", err)
		return nil
	default:
		return err
	}
	w.log.Info("serving metrics and health", "metrics", "http://"+listener.Addr().String()+"/metrics")
	w.admin = admin.New(admin.Config{Metrics: w.telemetry.Metrics(), Ready: ready, Logger: w.log})
	go func() {
		defer close(w.served)
		if err := w.admin.Serve(listener); err != nil {
			w.log.Error("metrics and health are not served any more", "error", err)
		}
	}()
	return nil
}

// reloaded takes note of a configuration that was loaded, and of its certificates.
func (w *watch) reloaded(cfg config.Config) {
	list := telemetry.Certificates(cfg)
	w.certificates.Store(&list)
	w.config.Store(&cfg)
}

// stop ends what watches, after the node: until then it shows that the node stops. It
// takes watchEndTime at most, and less when the context ends before.
func (w *watch) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchEndTime)
	defer cancel()
	var err error
	if w.admin != nil {
		err = w.admin.Shutdown(ctx)
		<-w.served
	}
	if err := errors.Join(err, w.telemetry.Shutdown(ctx)); err != nil {
		w.log.Debug("not everything that was measured was told", "error", err)
	}
}
