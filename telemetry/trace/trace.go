package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/ticketing-io/ticketing/core/service"
)

// Names of spans.
const (
	SpanAcquire = "acquire"
	SpanQueue   = "queue"   // from being parsed to being proposed, or to the end of the wait
	SpanCommit  = "commit"  // the entry is written by a majority and applied
	SpanDeliver = "deliver" // from being decided to the answer being written
	SpanRelease = "release"
	SpanExpire  = "expire"
)

// Attributes of spans.
const (
	keyAttr      = attribute.Key("ticketing.key")
	keyHashAttr  = attribute.Key("ticketing.key_hash")
	ownerAttr    = attribute.Key("ticketing.owner") // decimal: it has 64 bits
	tokenAttr    = attribute.Key("ticketing.token") // decimal
	waitAttr     = attribute.Key("ticketing.wait_s")
	leaseAttr    = attribute.Key("ticketing.lease_s")
	outcomeAttr  = attribute.Key("ticketing.outcome")
	refusedAttr  = attribute.Key("ticketing.refused")
	positionAttr = attribute.Key("ticketing.queue_position")
	nodeAttr     = attribute.Key("ticketing.node")
	roleAttr     = attribute.Key("ticketing.role")
	whyAttr      = attribute.Key("ticketing.kept_for")
	heldAttr     = attribute.Key("ticketing.held_s")
	lagAttr      = attribute.Key("ticketing.lag_s")
	indexAttr    = attribute.Key("raft.index")
	termAttr     = attribute.Key("raft.term")
	commandsAttr = attribute.Key("raft.commands")
)

// Trace is a request from its beginning to its end.
type Trace struct {
	ID      trace.TraceID
	Key     string // or its hash
	Outcome string // of an acquire; "" for the end of a grant
	Spans   []Span // the root is the first
}

// Duration returns how long the whole took.
func (t *Trace) Duration() time.Duration { return t.Spans[0].End.Sub(t.Spans[0].Start) }

// Span is a part of a trace.
type Span struct {
	ID         trace.SpanID
	Parent     trace.SpanID // zero for the root
	Name       string
	Start, End time.Time
	Attributes []attribute.KeyValue
	Links      []trace.SpanContext
	Error      string // what was the server's fault; "" for nothing
}

var refusals = []string{
	service.RefusedAcquires: "acquires", service.RefusedKeys: "keys", service.RefusedWaiters: "waiters",
	service.RefusedKeyWaiters: "key_waiters", service.RefusedDraining: "draining",
	service.RefusedQuiet: "quiet", service.RefusedNotProposed: "not_proposed",
}

// faults says which outcomes are the server's fault.
var faults = map[service.AcquireResult]string{
	service.AcquireExhausted: "the tokens are used up",
	service.AcquireUnknown:   "it was proposed, and the leadership ended before its outcome was known",
}

func (t *Tracer) traceOf(q *request) *Trace {
	if q.acquire != nil {
		return t.acquireTrace(q)
	}
	return t.endTrace(q)
}

func (t *Tracer) acquireTrace(q *request) *Trace {
	e := q.acquire
	decided := e.At.Add(e.Waited)
	root := Span{
		ID: q.id.span, Name: SpanAcquire, Start: e.At, End: q.answered, Error: faults[e.Result],
		Attributes: append(t.common(e.Key, e.Owner, e.Token, q.why),
			outcomeAttr.String(e.Result.String()), roleAttr.String(t.role(e.Result)),
			waitAttr.Float64(e.Wait.Seconds()), leaseAttr.Float64(e.Lease.Seconds()), positionAttr.Int(e.Position)),
	}
	if e.Refused != 0 {
		root.Attributes = append(root.Attributes, refusedAttr.String(refusals[e.Refused]))
	}
	spans := append(make([]Span, 0, 4), root) // with its queue, commit and deliver
	child := func(name string, start, end time.Time) *Span {
		spans = append(spans, Span{ID: t.childOf(q.id, len(spans)), Parent: q.id.span, Name: name, Start: start, End: end})
		return &spans[len(spans)-1]
	}
	queued := e.At.Add(e.Proposed)
	if e.Proposed == 0 {
		queued = decided
	}
	if queued.After(e.At) {
		s := child(SpanQueue, e.At, queued)
		if e.Freed.Token != 0 {
			end := t.salt.end(e.Freed.Token)
			s.Links = []trace.SpanContext{linkTo(end)}
		}
	}
	if e.Entry.Index != 0 || e.Result == service.AcquireUnknown && e.Proposed != 0 {
		child(SpanCommit, queued, decided).Attributes = entryAttributes(e.Entry)
	}
	child(SpanDeliver, decided, q.answered)
	return &Trace{ID: q.id.trace, Key: t.key(e.Key), Outcome: e.Result.String(), Spans: spans}
}

func (t *Tracer) endTrace(q *request) *Trace {
	e := &q.end
	root := Span{ID: q.id.span, Name: SpanRelease, Start: e.At.Add(-e.Took), End: e.At}
	root.Attributes = append(t.common(q.key, e.Owner, e.Token, q.why), heldAttr.Float64(e.Held.Seconds()))
	if e.Expired {
		root.Name, root.Start = SpanExpire, e.At.Add(-e.Lag)
		root.Attributes = append(root.Attributes, lagAttr.Float64(e.Lag.Seconds()))
	}
	root.Attributes = append(root.Attributes, entryAttributes(e.Entry)...)
	if q.linked {
		root.Links = []trace.SpanContext{linkTo(t.salt.acquire(e.Token))}
	}
	return &Trace{ID: q.id.trace, Key: t.key(q.key), Spans: []Span{root}}
}

// common returns the attributes that every root has.
func (t *Tracer) common(key string, owner, token uint64, why Why) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 12)
	if t.config.HashKeys {
		list = append(list, keyHashAttr.String(t.key(key)))
	} else {
		list = append(list, keyAttr.String(key))
	}
	list = append(list, whyAttr.String(why.String()))
	if owner != 0 {
		list = append(list, ownerAttr.String(strconv.FormatUint(owner, 10)))
	}
	if token != 0 {
		list = append(list, tokenAttr.String(strconv.FormatUint(token, 10)))
	}
	if t.config.Node != "" {
		list = append(list, nodeAttr.String(t.config.Node))
	}
	return list
}

// role says what the node was when it decided.
func (t *Tracer) role(r service.AcquireResult) string {
	switch {
	case t.config.Node == "":
		return "single"
	case r == service.AcquireTurnedAway:
		return "follower"
	}
	return "leader"
}

// key returns a key as it may be shown.
func (t *Tracer) key(key string) string {
	if !t.config.HashKeys {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

func (t *Tracer) childOf(root id, n int) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], t.salt.mix(binary.BigEndian.Uint64(root.span[:]), uint64(n))|1)
	return s
}

func linkTo(i id) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: i.trace, SpanID: i.span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// entryAttributes returns what is known of an entry in the log; nothing without one.
func entryAttributes(e service.EntryInfo) []attribute.KeyValue {
	if e.Index == 0 {
		return nil
	}
	return []attribute.KeyValue{indexAttr.Int64(int64(e.Index)), termAttr.Int64(int64(e.Term)), commandsAttr.Int(e.Commands)}
}

// hash makes a number of a text.
func hash(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:8])
}
