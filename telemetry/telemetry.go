// Package telemetry tells how a node is: its metrics, and a trace of each acquire that is
// worth one. It adapts the observers that the core declares, so that the core imports
// nothing of it.
package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"go.opentelemetry.io/otel"

	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/core/server"
	"github.com/ticketing-io/ticketing/core/service"
	"github.com/ticketing-io/ticketing/telemetry/logs"
	"github.com/ticketing-io/ticketing/telemetry/metrics"
	"github.com/ticketing-io/ticketing/telemetry/trace"
)

// Config is what a node's telemetry is made of.
type Config struct {
	// Node is the node's configuration, which has been validated.
	Node config.Config
	// Version and Revision are the program's.
	Version, Revision string
	// Env looks up an environment variable: the standard OTEL_* ones rule the traces.
	Env func(string) (string, bool)
	// Console is where traces are written when the environment asks for it; nil for nowhere.
	Console io.Writer
	// Logger is told what an operator wants to know; nil for nobody.
	Logger *slog.Logger
}

// Telemetry is that of one node. Two nodes in one process share nothing.
type Telemetry struct {
	metrics *metrics.Metrics
	tracer  *trace.Tracer // nil when tracing is off
	gates   *logs.Gates
}

// Setup returns a node's telemetry. It connects to nobody: a collector that is not there
// costs what is to be sent to it and nothing else. A variable of the environment that is not
// understood is logged, and its default taken, as OpenTelemetry has it. Shutdown ends it.
func Setup(ctx context.Context, c Config) (*Telemetry, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Telemetry{metrics: metrics.New(metrics.Config{
		Clustered: c.Node.Clustered(), Version: c.Version, Revision: c.Revision, Logger: c.Logger,
	})}
	settings, err := trace.ReadSettings(c.Env, c.Node.Trace.Sample)
	if err != nil {
		c.Logger.Warn("part of the environment is not understood: its defaults are taken", "error", err)
	}
	if settings.Disabled {
		t.gates = logs.NewGates(c.Logger)
		return t, nil
	}
	var exporter *trace.Exporter
	if settings.Protocol != "" {
		exporter, err = trace.NewExporter(ctx, settings.Protocol, settings.Batches, trace.Service{Name: "ticketing", Version: c.Version, Instance: c.Node.Cluster.NodeID})
		if err != nil {
			return nil, err
		}
		// The SDK has one handler for the process; what it tells is no node's alone.
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			c.Logger.Debug("traces could not be sent", "error", err)
		}))
		c.Logger.Info("sending traces to a collector", "protocol", settings.Protocol, "sample", settings.Sample)
	}
	t.gates = logs.NewGates(c.Logger)
	var console io.Writer
	if settings.Console {
		console = c.Console
	}
	t.tracer = trace.New(trace.Config{
		Sample: settings.Sample, Slow: c.Node.Trace.Slow, HashKeys: c.Node.Trace.HashKeys,
		Node: c.Node.Cluster.NodeID, Salt: salt(c.Node), Exporter: exporter, Console: console,
	})
	return t, nil
}

// salt is what the nodes of a cluster have in common, and clusters have not.
func salt(c config.Config) (text string) {
	for _, m := range c.Cluster.Members {
		text += m.ID + "=" + m.Raft + ","
	}
	return text
}

// Watch has scrapes read how things stand from here on. What became of traces is known
// here.
func (t *Telemetry) Watch(s metrics.Sources) {
	s.Tracing = t.tracing
	t.metrics.Watch(s)
}

func (t *Telemetry) tracing() metrics.Tracing {
	exporter := t.tracer.Exporter()
	return metrics.Tracing{
		ByRatio: t.tracer.Kept(trace.ByRatio), BySlowness: t.tracer.Kept(trace.BySlowness),
		ByDoubt: t.tracer.Kept(trace.ByDoubt), ByLink: t.tracer.Kept(trace.ByLink),
		DroppedTraces: t.tracer.Dropped(), DroppedSpans: exporter.Lost(), ExportFailures: exporter.Failures(),
	}
}

// Metrics returns what answers scrapes.
func (t *Telemetry) Metrics() http.Handler { return t.metrics.Handler() }

// Traces returns the traces that are kept in memory; nil when tracing is off.
func (t *Telemetry) Traces() *trace.Ring { return t.tracer.Ring() }

// Service returns what core/service is to tell.
func (t *Telemetry) Service() service.Observer { return locks{t} }

// Server returns what core/server is to tell.
func (t *Telemetry) Server() server.Observer { return t.metrics.Connections }

// Replica returns what core/replica is to tell; nil on a single server.
func (t *Telemetry) Replica() replica.Observer {
	if t.metrics.Raft == nil {
		return nil
	}
	return t.metrics.Raft
}

// Shutdown sends the traces that are there, as far as the context lets it.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	t.gates.Close()
	if err := t.tracer.Close(ctx); err != nil {
		return errors.Join(errors.New("the last traces were not all sent"), err)
	}
	return nil
}

// locks gives what the service tells to the metrics and the traces.
type locks struct{ *Telemetry }

// AcquireDecided counts an acquire, and keeps its trace if it is worth one.
func (l locks) AcquireDecided(e service.AcquireEvent) (answered func()) {
	id, answered := l.tracer.Acquire(e)
	l.metrics.Acquire(e, id)
	return answered
}

// ReleaseDecided does so for a release.
func (l locks) ReleaseDecided(e service.ReleaseEvent) {
	l.tracer.Release(e)
	l.metrics.Release(e)
}

// LeaseEnded does so for a lease that ended.
func (l locks) LeaseEnded(e service.LeaseEvent) {
	l.tracer.LeaseEnded(e)
	l.metrics.LeaseEnded(e)
}

// GateChanged counts and logs a gate of admission that was closed or opened.
func (l locks) GateChanged(g service.Gate, closed bool) {
	l.metrics.GateChanged(g, closed)
	l.gates.Changed(g.String(), closed)
}
