// Package due orders things by the time at which they are due. It is the
// deadline heap of leases and of waits.
package due

import (
	"container/heap"
	"time"
)

// Slot is an item's place in a Queue. A type becomes an Item when it embeds one.
type Slot struct {
	at    time.Duration
	order uint64 // among those due at the same time
	index int32  // place in the heap plus one; 0 when in no queue
}

func (s *Slot) slot() *Slot { return s }

// DueAt returns when the item is due, as it was last given to Queue.Add.
func (s *Slot) DueAt() time.Duration { return s.at }

// Order returns the item's order, as it was last given to Queue.Add.
func (s *Slot) Order() uint64 { return s.order }

// Queued says whether the item is in a queue.
func (s *Slot) Queued() bool { return s.index != 0 }

// Item is what a Queue holds: a pointer to a type that embeds Slot. It can be in
// one queue at a time.
type Item interface{ slot() *Slot }

// Queue is a min-heap of items by due time. Its zero value is empty.
//
// Items that are due at the same time come in their order. Where no two have the
// same, what comes first depends on what is queued alone, not on how it got there:
// two replicas with the same items take them out alike.
//
// An item knows its place, so that one that is no longer wanted is taken out at
// once: under a steady load of short holds with long leases, entries left behind
// until their time comes would outnumber the live ones by thousands to one.
type Queue[T Item] struct{ items items[T] }

// Len returns how many items are queued.
func (q *Queue[T]) Len() int { return len(q.items) }

// Add queues the item, which is in no queue, to be due at the given time, behind
// those due then with a lower order.
func (q *Queue[T]) Add(item T, at time.Duration, order uint64) {
	s := item.slot()
	if s.index != 0 {
		panic("due: item added twice")
	}
	s.at, s.order = at, order
	heap.Push(&q.items, item)
}

// Remove takes the item out. It does nothing when the item is not queued.
func (q *Queue[T]) Remove(item T) {
	if s := item.slot(); s.index != 0 {
		heap.Remove(&q.items, int(s.index)-1)
	}
}

// First returns the item that is due first, without taking it out.
func (q *Queue[T]) First() (item T, ok bool) {
	if len(q.items) == 0 {
		return item, false
	}
	return q.items[0], true
}

// Next returns when the first item is due.
func (q *Queue[T]) Next() (at time.Duration, ok bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].slot().at, true
}

// items is the heap itself, in the terms of container/heap.
type items[T Item] []T

func (h items[T]) Len() int { return len(h) }

func (h items[T]) Less(i, j int) bool {
	a, b := h[i].slot(), h[j].slot()
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (h items[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot().index = int32(i) + 1
	h[j].slot().index = int32(j) + 1
}

func (h *items[T]) Push(x any) {
	item := x.(T)
	*h = append(*h, item)
	item.slot().index = int32(len(*h))
}

func (h *items[T]) Pop() any {
	old := *h
	n := len(old) - 1
	item := old[n]
	var none T
	old[n] = none // let the item be collected
	*h = old[:n]
	item.slot().index = 0
	return item
}
