package due

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type item struct {
	Slot
	name int
}

// Whatever is added and taken out, the queue agrees with a sorted list: the same
// items are in it, the first is the one that is due first, of several the one with
// the lowest order, and each knows its place.
func TestQueueAgreesWithASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := make([]*item, 20)
		for i := range items {
			items[i] = &item{name: i}
		}
		anItem := rapid.SampledFrom(items)
		anyTime := rapid.Custom(func(t *rapid.T) time.Duration {
			// A narrow range, so that many are due at the same time.
			return time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second
		})
		var q Queue[*item]
		var list []*item
		var added uint64

		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				it := anItem.Draw(t, "item")
				if it.Queued() {
					t.Skip("queued already")
				}
				at := anyTime.Draw(t, "at")
				added++
				q.Add(it, at, added)
				list = append(list, it)
				if it.DueAt() != at || it.Order() != added {
					t.Fatalf("item is due at %v, order %d; added for %v, order %d", it.DueAt(), it.Order(), at, added)
				}
			},
			"remove": func(t *rapid.T) {
				it := anItem.Draw(t, "item")
				q.Remove(it)
				list = slices.DeleteFunc(list, func(o *item) bool { return o == it })
			},
			"take the first": func(t *rapid.T) {
				it, ok := q.First()
				if !ok {
					t.Skip("empty")
				}
				q.Remove(it)
				list = slices.DeleteFunc(list, func(o *item) bool { return o == it })
			},
			"": func(t *rapid.T) { checkQueue(t, &q, list, items) },
		})
	})
}

func checkQueue(t *rapid.T, q *Queue[*item], list, all []*item) {
	slices.SortFunc(list, func(a, b *item) int {
		return cmp.Or(cmp.Compare(a.DueAt(), b.DueAt()), cmp.Compare(a.Order(), b.Order()))
	})
	if q.Len() != len(list) {
		t.Fatalf("queue has %d items, the list %d", q.Len(), len(list))
	}
	first, ok := q.First()
	next, nextOK := q.Next()
	switch {
	case ok != (len(list) > 0) || nextOK != ok:
		t.Fatalf("First says %v and Next %v with %d items", ok, nextOK, len(list))
	case ok && (first != list[0] || next != list[0].DueAt()):
		t.Fatalf("first is item %d (Next: %v), in the list item %d, due at %v", first.name, next, list[0].name, list[0].DueAt())
	}
	for _, it := range all {
		in := slices.Contains(list, it)
		if it.Queued() != in {
			t.Fatalf("item %d says queued %v, the list says %v", it.name, it.Queued(), in)
		}
		if in && q.items[it.index-1] != it {
			t.Fatalf("item %d says it is in place %d, where another is", it.name, it.index-1)
		}
	}
}

func TestItemsComeOutInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOf(rapid.Int64Range(math.MinInt64, math.MaxInt64)).Draw(t, "times")
		var q Queue[*item]
		for _, at := range times {
			q.Add(&item{}, time.Duration(at), 0)
		}
		slices.Sort(times)
		for _, want := range times {
			it, _ := q.First()
			if int64(it.DueAt()) != want {
				t.Fatalf("got the item due at %d, want %d", it.DueAt(), want)
			}
			q.Remove(it)
			if it.Queued() {
				t.Fatal("an item that was taken out says that it is queued")
			}
		}
	})
}

// An item that was taken out can be collected: the heap keeps no pointer to it.
func TestNothingIsKeptOfARemovedItem(t *testing.T) {
	var q Queue[*item]
	a, b := &item{}, &item{}
	q.Add(a, 1, 0)
	q.Add(b, 2, 0)
	q.Remove(a)
	q.Remove(b)
	for i, left := range q.items[:cap(q.items)] {
		if left != nil {
			t.Errorf("place %d still points to an item", i)
		}
	}
}

func TestAddingAQueuedItemPanics(t *testing.T) {
	var q Queue[*item]
	it := &item{}
	q.Add(it, 1, 0)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	q.Add(it, 2, 0)
}
