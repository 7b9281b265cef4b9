package trace

import (
	"math/rand/v2"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Everybody who sees a grant finds the ids of its acquire and of its end by the token,
// and clusters that send to one collector have different ones.
func TestIDsFollowFromTheToken(t *testing.T) {
	one, other := salt(hash("n1,n2,n3")), salt(hash("a,b,c"))
	seen := make(map[id]string)
	for token := range uint64(1000) {
		for name, i := range map[string]id{
			"acquire": one.acquire(token), "end": one.end(token), "another cluster's acquire": other.acquire(token),
		} {
			if was, ok := seen[i]; ok {
				t.Fatalf("%s of token %d has the ids of %s", name, token, was)
			}
			seen[i] = name
			if !i.trace.IsValid() || !i.span.IsValid() {
				t.Fatalf("%s of token %d has no valid ids", name, token)
			}
		}
	}
	if salt(hash("n1,n2,n3")).acquire(7) != one.acquire(7) {
		t.Error("two nodes of a cluster find different ids")
	}
}

// The ratio is decided as the SDK decides it, so that what others trace fits together.
func TestTheRatioIsTheSDKs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, part := range []float64{0, 0.001, 0.01, 0.5, 0.999, 1} {
		sampler, kept := sdk.TraceIDRatioBased(part), 0
		for range 20_000 {
			s, token := salt(rng.Uint64()), rng.Uint64()
			i, keeps := s.acquire(token), newRatio(part).keeps(s.acquireLow(token))
			if keeps {
				kept++
			}
			if sdks := sampler.ShouldSample(sdk.SamplingParameters{TraceID: i.trace}).Decision == sdk.RecordAndSample; sdks != keeps {
				t.Fatalf("of %v, trace %v is kept: %v; the SDK says %v", part, i.trace, keeps, sdks)
			}
		}
		if got := float64(kept) / 20_000; got < part-0.02 || got > part+0.02 {
			t.Errorf("of %v it keeps %v", part, got)
		}
	}
}
