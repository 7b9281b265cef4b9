package lock_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/ticketing-io/ticketing/core/lock"
)

// BenchmarkGrantRelease is a grant and its release in one entry each, as the
// single server applies them.
func BenchmarkGrantRelease(b *testing.B) {
	m := lock.New()
	var out lock.Outcome
	m.Apply(&lock.Entry{First: 1}, &out)
	grant := lock.Entry{Reign: 1, Commands: []lock.Command{{Kind: lock.KindGrant, Key: "order-42", Owner: 7, Lease: 30 * time.Second, Holder: "cron@db1"}}}
	release := lock.Entry{Reign: 1, Commands: []lock.Command{{Kind: lock.KindRelease, Key: "order-42"}}}
	b.ReportAllocs()
	for b.Loop() {
		grant.Elapsed++
		m.Apply(&grant, &out)
		release.Commands[0].Token = out.Results[0].Token
		m.Apply(&release, &out)
	}
}

// BenchmarkDecodeEntry is an entry of 128 releases and 128 grants, as a follower
// decodes it; divide by 256 for one command.
func BenchmarkDecodeEntry(b *testing.B) {
	e := lock.Entry{Reign: 1, Elapsed: time.Hour}
	for i := range 128 {
		key := fmt.Sprint("order-", i)
		e.Commands = append(e.Commands,
			lock.Command{Kind: lock.KindRelease, Key: key, Token: 1 << 50},
			lock.Command{Kind: lock.KindGrant, Key: key, Owner: 7, Lease: 30 * time.Second, Holder: "cron@db1"})
	}
	src := lock.AppendEntry(nil, &e)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			src = lock.AppendEntry(src[:0], &e)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := lock.DecodeEntry(src, &e); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSnapshot is a full table of a cluster. Only copy stands in the way of
// the next entry.
func BenchmarkSnapshot(b *testing.B) {
	m := lock.New()
	var out lock.Outcome
	m.Apply(&lock.Entry{First: 1}, &out)
	for i := range 65_536 {
		m.Apply(&lock.Entry{Reign: 1, Elapsed: time.Duration(i), Commands: []lock.Command{
			{Kind: lock.KindGrant, Key: fmt.Sprint("order-", i), Owner: 7, Lease: 30 * time.Second, Holder: "cron@db1"},
		}}, &out)
	}
	var file bytes.Buffer
	if _, err := m.Snapshot().WriteTo(&file); err != nil {
		b.Fatal(err)
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			m.Snapshot()
		}
	})
	b.Run("copy and write", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Snapshot().WriteTo(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := lock.Read(bytes.NewReader(file.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
}
