package trace

import (
	"encoding/binary"

	"go.opentelemetry.io/otel/trace"
)

// salt keeps the ids of several clusters apart that send to one collector.
type salt uint64

// The ids that belong to a token.
const (
	acquireHigh = iota + 1
	acquireLow
	acquireRoot
	endHigh
	endLow
	endRoot
)

// id is a span and the trace that it is the root of.
type id struct {
	trace trace.TraceID
	span  trace.SpanID
}

// acquire returns the ids of the acquire that was granted by a token. They follow from the
// token alone, so that whoever sees the grant end can link to it, after a change of
// leadership too.
func (s salt) acquire(token uint64) id {
	return newID(s.mix(token, acquireHigh), s.acquireLow(token), s.mix(token, acquireRoot))
}

// acquireLow returns the half of an acquire's trace id by which is decided whether it is kept.
func (s salt) acquireLow(token uint64) uint64 { return s.mix(token, acquireLow) }

// end returns the ids of the end of the grant by a token.
func (s salt) end(token uint64) id {
	return newID(s.mix(token, endHigh), s.mix(token, endLow), s.mix(token, endRoot))
}

func newID(high, low, span uint64) (i id) {
	binary.BigEndian.PutUint64(i.trace[:8], high)
	binary.BigEndian.PutUint64(i.trace[8:], low)
	binary.BigEndian.PutUint64(i.span[:], span|1) // an id of zeros is none
	return i
}

// mix makes an id of a token, another one for each use. The token and the use are mixed
// one after the other: were they added first, one token's use would be another's.
func (s salt) mix(token, use uint64) uint64 { return scatter(scatter(token+uint64(s)) + use) }

// scatter is splitmix64: each bit of its result depends on each bit of what goes in.
func scatter(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// ratio is the part of the traces that is kept, as a bound of what comparable gives.
type ratio uint64

// newRatio returns the ratio for a part from 0 to 1.
func newRatio(part float64) ratio {
	const all = 1 << 63
	switch {
	case part <= 0:
		return 0
	case part >= 1:
		return all
	}
	return ratio(part * all)
}

// keeps decides by the low half of the trace id, as the SDK's own sampler does, so that all
// who see a trace decide the same.
func (r ratio) keeps(low uint64) bool { return ratio(low>>1) < r }
