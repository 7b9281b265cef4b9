package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/ticketing-io/ticketing/core/config"
	"github.com/ticketing-io/ticketing/core/node"
	"github.com/ticketing-io/ticketing/core/replica"
	"github.com/ticketing-io/ticketing/telemetry/logs"
)

// drainTime bounds the end of a server that was told to stop. What its clients
// have no answer to by then is unknown to them.
const drainTime = 10 * time.Second

func newServe(p *program) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run the lock server",
		GroupID: groupServer,
		Long: `Runs the lock server until it gets TERM or INT. Without any configuration it serves
this machine on ` + defaultAddr + `.

A plain single server keeps its locks in memory. A restart forgets who holds what:
two may then believe to hold one lock, and only the fencing token tells them apart.
Tokens begin at the start time in microseconds, so in practice they go on above the
old ones; a clock that is set back breaks that. A node of a cluster, which is what the
settings of cluster make it, keeps them on disk; a cluster of one does too.

A setting is looked up as a flag, then in the environment, then in the file of
--config, then its default is taken. The environment's name is in brackets behind
each flag; client tokens are set by --client-tokens-file, CLIENT_TOKENS_FILE or
CLIENT_TOKENS, not by a flag, since everybody sees arguments.

Metrics are served to this machine on http://127.0.0.1:5280/metrics (admin.listen),
health on /livez and /readyz. Traces of slow acquires are kept; they go to a collector
when OTEL_EXPORTER_OTLP_ENDPOINT names one.

  TERM, INT   answer what waits, release what can be, and stop within 10 s; a second
              one, half a second later or another, stops at once
  HUP         read client tokens, certificates and log level again; connections stay`,
		Example: `  ticketing serve
  ticketing serve --listen :5225 --client-tokens-file tokens
  ticketing serve --config ticketing.toml --log-level debug`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return serve(cmd.Context(), p.stdout, p.stderr, config.Sources{
				File:  file,
				Env:   p.lookupEnv,
				Flags: givenFlags(cmd.Flags()),
			})
		},
	}
	cmd.Flags().SortFlags = false
	textVar(cmd.Flags(), &file, "config", "FILE", "file with the configuration, TOML")
	addKeyFlags(cmd.Flags())
	return cmd
}

// addKeyFlags makes a flag of each key of the configuration.
func addKeyFlags(fs *pflag.FlagSet) {
	for _, k := range config.Keys() {
		usage := fmt.Sprintf("%s [%s]", k.Help, k.Env)
		if k.Switch() {
			fs.Bool(k.Flag, false, usage)
			continue
		}
		value := k.Default
		textVar(fs, &value, k.Flag, k.Value, usage)
		if k.Secret {
			fs.Lookup(k.Flag).Hidden = true // it exists to be refused with a reason
		}
	}
}

// givenFlags returns the flags that stand on the command line.
func givenFlags(fs *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	fs.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return given
}

// serve runs a server until it is told to stop.
func serve(ctx context.Context, stdout, stderr io.Writer, sources config.Sources) error {
	signals := make(chan os.Signal, signalQueue)
	// Not stopped in the end: a second signal that comes as the process ends would kill it,
	// and its exit code would say so.
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	survivePipes() // locks are worth more than a log that nobody reads

	cfg, warnings, err := config.Load(sources)
	if err != nil {
		return configFault("the configuration", err, advice{"The server was not started.", "Correct what is listed above."})
	}
	var level slog.LevelVar
	level.Set(cfg.LogLevel)
	log := logs.New(stderr, cfg.LogFormat, &level)
	logWarnings(log, warnings)
	w, err := newWatch(ctx, cfg, sources.Env, stdout, log)
	if err != nil {
		return &fault{exitError, err, advice{"The server was not started.", "Correct the variable, or unset it."}}
	}
	n, err := node.Start(ctx, cfg, w.observe(node.Options{Logger: log, Level: &level}))
	if err != nil {
		w.stop(ctx)
		return startFault(cfg, err)
	}
	if err := w.start(ctx, n, cfg); err != nil {
		drain(log, n, w, signals, nil)
		return startFault(cfg, err)
	}
	var first os.Signal
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				reload(log, n, w, sources)
				continue
			}
			first = sig
			log.Info("told to stop", "signal", sig.String())
		case <-ctx.Done():
		case err := <-n.Served():
			log.Error("the server can't go on", "error", err)
			drain(log, n, w, signals, nil)
			a, ok := clusterAdvice(err)
			if !ok {
				a = advice{"The server has stopped.", "Start it again."}
			}
			return &fault{exitError, err, a}
		}
		return drain(log, n, w, signals, first)
	}
}

// drain stops the server and what watches it within drainTime, or at once on another
// signal than the first.
func drain(log *slog.Logger, n *node.Node, w *watch, signals <-chan os.Signal, first os.Signal) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	closed := make(chan error, 1)
	go func() {
		err := n.Close(ctx)
		w.stop(ctx)
		closed <- err
	}()
	for {
		select {
		case err := <-closed:
			if err != nil {
				log.Warn("not every client could be answered", "error", err)
			}
			return nil
		case sig := <-signals:
			if again := sig == first && time.Since(began) < sameSignal; sig != syscall.SIGHUP && !again {
				return &fault{exitError, errors.New("a second signal ended the server before it was done"),
					advice{"Clients with no answer yet don't know what became of their requests.", "Nothing is left to do."}}
			}
		}
	}
}

// reload takes over what can be changed while the server runs.
func reload(log *slog.Logger, n *node.Node, w *watch, sources config.Sources) {
	cfg, warnings, err := config.Load(sources)
	if err == nil {
		logWarnings(log, warnings)
		if err = n.Reload(cfg); err == nil {
			w.reloaded(cfg)
		}
	}
	var faults config.Faults
	switch {
	case errors.As(err, &faults):
		for _, f := range faults {
			log.Error("the new configuration has a fault", "at", f.Source, "key", f.Key, "fault", f.Text)
		}
		log.Error("the configuration stays as it was", "faults", len(faults))
	case err != nil:
		log.Error("the configuration stays as it was", "error", err)
	}
}

func logWarnings(log *slog.Logger, warnings config.Warnings) {
	for _, w := range warnings {
		log.Warn(w.Text, "at", w.Source, "key", w.Key)
	}
}

// startFault tells why a server did not start.
func startFault(cfg config.Config, err error) error {
	a, ok := clusterAdvice(err)
	if ok {
		a.means = "The server was not started. " + a.means
		return &fault{exitError, err, a}
	}
	a = advice{"The server was not started.", "Check the address (--listen, LISTEN) and what the configuration names."}
	if cfg.Clustered() {
		a.todo = "Check what the configuration names: the addresses, the data folder and the node's id."
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		on, flag := cfg.Listen, "--listen"
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
			on = op.Addr.String()
		}
		switch {
		case cfg.Clustered() && samePort(on, cfg.Cluster.Listen):
			flag = "--cluster-listen"
		case samePort(on, cfg.Admin.Listen):
			flag = "--admin-listen"
		}
		a = advice{
			fmt.Sprintf("Another program already listens on %s, perhaps another server of this kind. This one was not started.", on),
			"Stop the other one, or choose another address with " + flag + "."}
	}
	return &fault{exitError, err, a}
}

// samePort tells whether two addresses have the same port: their hosts may be spelled
// in several ways.
func samePort(a, b string) bool {
	_, one, errOne := net.SplitHostPort(a)
	_, other, errOther := net.SplitHostPort(b)
	return errOne == nil && errOther == nil && one == other
}

// clusterAdvice says what it means that a cluster's node can't take part, and what to do.
func clusterAdvice(err error) (advice, bool) {
	for _, c := range []struct {
		err error
		advice
	}{
		{replica.ErrInUse, advice{"Another process has the node's data folder, and two of them on it would be two voters.", "Stop the other one, or give this node a folder of its own (cluster.data_dir)."}},
		{replica.ErrRemoved, advice{"The cluster has taken this node out, for good: it must not vote any more.", "To use this machine again, give it a new cluster.node_id and an empty cluster.data_dir, and add it (ticketing members add)."}},
		{replica.ErrEmptied, advice{"What this node had promised the others is lost. If it voted now, a lock could be granted twice.", "Remove its id (ticketing members remove), give it a new cluster.node_id and an empty cluster.data_dir, and add that."}},
		{replica.ErrTooNew, advice{"This program does not understand what the cluster has agreed on, and must not guess.", "Install the version that the other nodes run, or a newer one."}},
	} {
		if errors.Is(err, c.err) {
			return c.advice, true
		}
	}
	return advice{}, false
}
