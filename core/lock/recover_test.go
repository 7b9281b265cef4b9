package lock

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// No token that was ever granted is granted again, whatever is restored into new
// clusters, older files than those restored before too, and whatever is recovered,
// the same old state several times too. Each begins later than the one before, and
// microseconds pass faster than tokens are granted.
func TestNoTokenIsGrantedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := uint64(1_700_000_000_000_000)
		granted := make(map[uint64]bool)
		machine := New()
		files := [][]byte{encoded(t, machine)}
		aFile := func(t *rapid.T) *Machine {
			return decoded(t, files[rapid.IntRange(0, len(files)-1).Draw(t, "file")])
		}
		var out Outcome
		lead := func() {
			clock++
			machine.Apply(&Entry{First: clock}, &out)
		}
		t.Repeat(map[string]func(*rapid.T){
			"grant": func(t *rapid.T) {
				if machine.Next() == 0 {
					lead()
				}
				for range rapid.IntRange(1, 5).Draw(t, "grants") {
					clock++
					e := Entry{Commands: []Command{{Kind: KindGrant, Key: "a", Lease: time.Second}}}
					if g, held := machine.Current("a"); held {
						e.Commands = []Command{{Kind: KindRelease, Key: "a", Token: g.Token}, e.Commands[0]}
					}
					machine.Apply(&e, &out)
					r := out.Results[len(out.Results)-1]
					if r.Status != Granted || granted[r.Token] {
						t.Fatalf("status %d, token %d", r.Status, r.Token)
					}
					granted[r.Token] = true
				}
			},
			"save":       func(t *rapid.T) { files = append(files, encoded(t, machine)) },
			"new leader": func(*rapid.T) { lead() },
			"new cluster": func(*rapid.T) {
				machine = New()
				lead()
			},
			"restore into a new cluster": func(t *rapid.T) {
				machine = New()
				lead()
				machine.Adopt(aFile(t))
				machine.Recover(0)
			},
			"recover from what is left": func(t *rapid.T) {
				machine = aFile(t)
				machine.Recover(0)
				lead()
			},
		})
	})
}
