package service

import (
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/local"
)

type lastAnswer struct{ a Answer }

func (l *lastAnswer) Deliver(a Answer)      { l.a = a }
func (l *lastAnswer) Flush()                {}
func (l *lastAnswer) Leader(string)         {}
func (l *lastAnswer) End(EndReason, string) {}

// BenchmarkAcquireRelease is an acquire of a free key, and its release.
func BenchmarkAcquireRelease(b *testing.B) {
	s := New(local.New(1), Config{Limits: DefaultLimits()})
	defer s.Close()
	var sink lastAnswer
	c := s.Open(&sink, "")
	b.ReportAllocs()
	for b.Loop() {
		s.Acquire(c, Acquire{Key: "order-42", Owner: 7, Wait: 5 * time.Second, Lease: 30 * time.Second})
		s.Release(c, "order-42", sink.a.Token)
	}
}

// BenchmarkHandOver is a release of a key that somebody waits for, and the acquire
// that waits next, with 1,000 in the queue.
func BenchmarkHandOver(b *testing.B) {
	s := New(local.New(1), Config{Limits: DefaultLimits()})
	defer s.Close()
	var sink lastAnswer
	c := s.Open(&sink, "")
	acquire := func() {
		s.Acquire(c, Acquire{Key: "order-42", Owner: 7, Wait: 255 * time.Second, Lease: 250 * time.Second})
	}
	for range 1000 {
		acquire()
	}
	token := sink.a.Token
	b.ReportAllocs()
	for b.Loop() {
		s.Release(c, "order-42", token)
		token++
		acquire()
	}
	if sink.a.Token != token {
		b.Fatalf("the last was granted with token %d, want %d", sink.a.Token, token)
	}
}
