package trace

import (
	"strings"
	"testing"
)

// What the SDK does not read of the environment itself is read here, and a value that is
// not understood is named.
func TestSettingsOfTheEnvironment(t *testing.T) {
	const otlp = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, c := range []struct {
		name, env string
		disabled  bool
		sample    float64
		protocol  string
		console   bool
		fields    string
		fault     string
	}{
		{name: "nothing is set", sample: 0.25},
		{name: "disabled", env: "OTEL_SDK_DISABLED=TRUE", disabled: true, sample: 0.25},
		{name: "not disabled", env: "OTEL_SDK_DISABLED=false", sample: 0.25},
		{name: "neither", env: "OTEL_SDK_DISABLED=1", sample: 0.25, fault: "OTEL_SDK_DISABLED"},
		{name: "always", env: "OTEL_TRACES_SAMPLER=always_on", sample: 1},
		{name: "never", env: "OTEL_TRACES_SAMPLER=parentbased_always_off", sample: 0},
		{name: "a ratio", env: "OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.5", sample: 0.5},
		{name: "a ratio without a number", env: "OTEL_TRACES_SAMPLER=traceidratio", sample: 1},
		{name: "a ratio above 1", env: "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2", sample: 0.25, fault: "OTEL_TRACES_SAMPLER_ARG"},
		{name: "a ratio that is none", env: "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN", sample: 0.25, fault: "OTEL_TRACES_SAMPLER_ARG"},
		{name: "another sampler", env: "OTEL_TRACES_SAMPLER=jaeger_remote", sample: 0.25, fault: "OTEL_TRACES_SAMPLER"},
		{name: "a collector", env: otlp, sample: 0.25, protocol: ProtocolHTTP},
		{name: "a collector for traces", env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4317 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc", sample: 0.25, protocol: ProtocolGRPC},
		{name: "the default collector", env: "OTEL_TRACES_EXPORTER=otlp OTEL_EXPORTER_OTLP_PROTOCOL=grpc", sample: 0.25, protocol: ProtocolGRPC},
		{name: "no exporter", env: otlp + " OTEL_TRACES_EXPORTER=none", sample: 0.25},
		{name: "the standard output", env: "OTEL_TRACES_EXPORTER=console", sample: 0.25, console: true},
		{name: "both", env: "OTEL_TRACES_EXPORTER=console,otlp", sample: 0.25, protocol: ProtocolHTTP, console: true},
		{name: "another exporter", env: otlp + " OTEL_TRACES_EXPORTER=zipkin", sample: 0.25, fault: "OTEL_TRACES_EXPORTER"},
		{name: "another protocol", env: otlp + " OTEL_EXPORTER_OTLP_PROTOCOL=http/json", sample: 0.25, protocol: ProtocolHTTP, fault: "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{name: "one propagator", env: "OTEL_PROPAGATORS=tracecontext", sample: 0.25, fields: "traceparent tracestate"},
		{name: "no propagator", env: "OTEL_PROPAGATORS=none", sample: 0.25, fields: "none"},
		{name: "another propagator", env: "OTEL_PROPAGATORS=b3", sample: 0.25, fault: "OTEL_PROPAGATORS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := make(map[string]string)
			for pair := range strings.FieldsSeq(c.env) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
			s, err := ReadSettings(func(name string) (string, bool) { v, ok := env[name]; return v, ok }, 0.25)
			if s.Disabled != c.disabled || s.Sample != c.sample || s.Protocol != c.protocol || s.Console != c.console {
				t.Errorf("%+v", s)
			}
			if (err == nil) != (c.fault == "") || err != nil && !strings.HasPrefix(err.Error(), c.fault+": ") {
				t.Errorf("the fault is %v, want one of %q", err, c.fault)
			}
			want := map[string]string{"": "traceparent tracestate baggage", "none": ""}
			fields, ok := want[c.fields]
			if !ok {
				fields = c.fields
			}
			got := make(map[string]bool)
			for _, f := range s.Propagators.Fields() {
				got[f] = true
			}
			for f := range strings.FieldsSeq(fields) {
				if !got[f] {
					t.Errorf("%q is not propagated", f)
				}
				delete(got, f)
			}
			if len(got) > 0 {
				t.Errorf("%v are propagated too", got)
			}
		})
	}
}
