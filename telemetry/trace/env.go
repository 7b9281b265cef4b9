package trace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// Settings is what the standard OTEL_* variables say, as far as the SDK and its exporters
// do not read them themselves: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
type Settings struct {
	// Disabled: nothing is traced (OTEL_SDK_DISABLED).
	Disabled bool
	// Sample is the part of the acquires that is kept (OTEL_TRACES_SAMPLER and its
	// _ARG), or what the configuration says.
	Sample float64
	// Protocol is how traces are exported: ProtocolGRPC, ProtocolHTTP, or "" for not at
	// all (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_PROTOCOL).
	Protocol string
	// Console: they are written to the standard output (OTEL_TRACES_EXPORTER).
	Console bool
	// Batches says how spans are sent (OTEL_BSP_*).
	Batches BatchSettings
	// Propagators are those of OTEL_PROPAGATORS.
	Propagators propagation.TextMapPropagator
}

// BatchSettings is how spans are gathered and sent.
type BatchSettings struct {
	Delay   time.Duration // the longest that a span waits for others (OTEL_BSP_SCHEDULE_DELAY)
	Timeout time.Duration // for one batch to be taken (OTEL_BSP_EXPORT_TIMEOUT)
	Queue   int           // spans that may wait; more are dropped (OTEL_BSP_MAX_QUEUE_SIZE)
	Batch   int           // spans from which a batch is sent at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)
}

// DefaultBatches returns what stands without a variable. It is the specification's but for
// the queue, which has room for what all of 100,000 acquires a second leave until the next
// batch is made: about two megabytes when it is full.
func DefaultBatches() BatchSettings {
	return BatchSettings{Delay: 5 * time.Second, Timeout: 30 * time.Second, Queue: 16384, Batch: 512}
}

// batchNumberMax bounds the numbers of OTEL_BSP_*: a million spans are some 150 MB.
const batchNumberMax = 1_000_000

// Protocols of OTLP.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// ReadSettings reads the environment. Sample is what the configuration says. The error
// names every variable that has a value which is not understood, and Settings then has
// what the variable's default is.
func ReadSettings(lookup func(string) (string, bool), sample float64) (Settings, error) {
	env := func(name string) string {
		v, _ := lookup(name)
		return strings.TrimSpace(v)
	}
	s := Settings{Sample: sample}
	var errs []error
	var err error
	switch v := strings.ToLower(env("OTEL_SDK_DISABLED")); v {
	case "true":
		s.Disabled = true
	case "", "false":
	default:
		errs = append(errs, fmt.Errorf("OTEL_SDK_DISABLED: %q is neither true nor false", v))
	}
	if s.Sample, err = sampler(env("OTEL_TRACES_SAMPLER"), env("OTEL_TRACES_SAMPLER_ARG"), sample); err != nil {
		errs = append(errs, err)
	}
	if s.Console, s.Protocol, err = exporter(env); err != nil {
		errs = append(errs, err)
	}
	if s.Batches, err = batches(env); err != nil {
		errs = append(errs, err)
	}
	if s.Propagators, err = propagators(env("OTEL_PROPAGATORS")); err != nil {
		errs = append(errs, err)
	}
	return s, errors.Join(errs...)
}

// sampler returns the part of the traces that is kept. No request has a parent, so that
// the parent-based samplers are what they do at a root.
func sampler(name, arg string, configured float64) (float64, error) {
	switch strings.TrimPrefix(strings.ToLower(name), "parentbased_") {
	case "":
		return configured, nil
	case "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		if arg == "" {
			return 1, nil
		}
		part, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(part >= 0 && part <= 1) {
			return configured, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is no number from 0 to 1", arg)
		}
		return part, nil
	}
	return configured, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not known; known are always_on, always_off, traceidratio, and parentbased_ before each", name)
}

// exporter returns how traces are exported. The specification has a collector on this
// machine as the default; here one must be named, since most have none.
func exporter(env func(string) string) (console bool, protocol string, err error) {
	first := func(names ...string) (name, value string) {
		for _, name = range names {
			if value = env(name); value != "" {
				return name, value
			}
		}
		return name, ""
	}
	otlp := false
	for name := range strings.SplitSeq(strings.ToLower(env("OTEL_TRACES_EXPORTER")), ",") {
		switch name = strings.TrimSpace(name); name {
		case "none":
		case "":
			_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
			otlp = otlp || endpoint != ""
		case "otlp":
			otlp = true
		case "console":
			console = true
		default:
			return false, "", fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not known; known are otlp, console and none", name)
		}
	}
	if !otlp {
		return console, "", nil
	}
	switch name, p := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); strings.ToLower(p) {
	case "", ProtocolHTTP:
		return console, ProtocolHTTP, nil
	case ProtocolGRPC:
		return console, ProtocolGRPC, nil
	default:
		return console, ProtocolHTTP, fmt.Errorf("%s: %q is not known; known are grpc and http/protobuf", name, p)
	}
}

// batches returns how spans are sent.
func batches(env func(string) string) (BatchSettings, error) {
	b := DefaultBatches()
	var errs []error
	read := func(name string, set func(int)) {
		text := env(name)
		if text == "" {
			return
		}
		if n, err := strconv.Atoi(text); err == nil && n > 0 && n <= batchNumberMax {
			set(n)
		} else {
			errs = append(errs, fmt.Errorf("%s: %q is no number from 1 to %d", name, text, batchNumberMax))
		}
	}
	read("OTEL_BSP_SCHEDULE_DELAY", func(n int) { b.Delay = time.Duration(n) * time.Millisecond })
	read("OTEL_BSP_EXPORT_TIMEOUT", func(n int) { b.Timeout = time.Duration(n) * time.Millisecond })
	read("OTEL_BSP_MAX_QUEUE_SIZE", func(n int) { b.Queue = n })
	read("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", func(n int) { b.Batch = n })
	b.Batch = min(b.Batch, b.Queue)
	return b, errors.Join(errs...)
}

// propagators returns those that are named, separated by commas.
func propagators(names string) (propagation.TextMapPropagator, error) {
	if names == "" {
		names = "tracecontext,baggage"
	}
	var list []propagation.TextMapPropagator
	for name := range strings.SplitSeq(names, ",") {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "tracecontext":
			list = append(list, propagation.TraceContext{})
		case "baggage":
			list = append(list, propagation.Baggage{})
		case "none", "":
		default:
			return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
				fmt.Errorf("OTEL_PROPAGATORS: %q is not known; known are tracecontext, baggage and none", name)
		}
	}
	return propagation.NewCompositeTextMapPropagator(list...), nil
}
