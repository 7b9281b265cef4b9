package due

import (
	"testing"
	"time"
)

// BenchmarkAddRemove is a steady load on 100,000 leases: one begins, and one of
// those that began long ago is released.
func BenchmarkAddRemove(b *testing.B) {
	const held = 100_000
	var q Queue[*item]
	items := make([]item, held)
	now := time.Duration(0)
	for i := range items {
		now++
		q.Add(&items[i], now, 0)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		now++
		it := &items[n%held]
		n += 7919
		q.Remove(it)
		q.Add(it, now, 0)
	}
}
