package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// FuzzServerBytes has a server answer with any bytes: nothing panics or hangs, and
// every call ends with a ticket or with an error of a kind.
func FuzzServerBytes(f *testing.F) {
	request := wire.Request{Owner: 1, Token: 7, Key: "k"}
	second := wire.Request{Owner: 2, Token: 7, Key: "k"}
	f.Add([]byte("\n\n"), grant(request, 9).Append(nil))
	f.Add(answer(wire.OpRelease, request).Append(nil), grant(request, 9).Append(grant(second, 10).Append(nil)))
	f.Add(names(here).Append(nil), names("b:1").Append(grant(request, 9).Append(nil)))
	f.Add([]byte("Mb:1\n"), []byte("Ebad_op\n"))
	f.Add([]byte("N\x00\x00\x00\x00\x00\x00\x00\x00k\n"), answer(wire.OpBusy, second).Append(answer(wire.OpTimeout, request).Append(nil)))
	f.Fuzz(func(t *testing.T, onKept, onBlock []byte) {
		inLab(t, func(l *lab) {
			b, n, kept, block := l.open()
			n.set(func(n *fakeNode) { n.refuse = true })
			attempts := []*attempt{l.acquire(b, "k", 3*time.Second), l.acquire(b, "k", 3*time.Second), l.release(b, "k", 7), l.acquire(b, "now", 0)}
			kept.raw(string(onKept))
			block.raw(string(onBlock))
			l.sleep(time.Second)
			synctest.Wait()
			for _, a := range attempts {
				a.wait()
				if a.err != nil && len(kindsOf(a.err)) == 0 {
					l.Errorf("an error of no kind: %v", a.err)
				}
				within(l, "a call", a.took, 0, immediateTime+DefaultReplyGrace)
			}
		})
	})
}
