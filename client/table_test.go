package client

import (
	"testing"

	"pgregory.net/rapid"
)

func TestATableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table table
		model := map[uint64]*call{}
		// Few numbers, many of which share a place.
		numbers := rapid.SampledFrom([]uint64{0, 1, 2, 63, 64, 65, 127, 128, 129, 1 << 40, 1<<40 + 1, 1<<40 + 64, 1<<64 - 1})
		spread := rapid.Uint64Range(0, 300)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			number := numbers.Draw(t, "number")
			if rapid.Bool().Draw(t, "spread") {
				number = spread.Draw(t, "number")
			}
			if rapid.IntRange(0, 2).Draw(t, "op") > 0 {
				c := &call{owner: number}
				table.set(number, c)
				model[number] = c
			} else {
				table.remove(number)
				delete(model, number)
			}
			if table.get(number) != model[number] || table.n != len(model) {
				t.Fatalf("%d: got %p of %d, want %p of %d", number, table.get(number), table.n, model[number], len(model))
			}
		}
		for number, c := range model {
			if table.get(number) != c {
				t.Fatalf("%d: got %p, want %p", number, table.get(number), c)
			}
		}
	})
}
