package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ticketing-io/ticketing/core/wire"
)

// How a fuzzed client ends, by the first byte's upper bits.
const (
	endFIN = iota
	endClose
	endReset
	endSilent
	endCount
)

// FuzzConnection: whatever bytes a client sends, in whatever pieces, and however it
// ends, the server neither panics nor keeps anything of it: the connection ends
// with exactly one reason, and no waiter is left.
//
// The first byte says how the client comes and goes: its lowest bit that it
// authenticates, the next two how it ends, the rest into what pieces it cuts the
// others.
func FuzzConnection(f *testing.F) {
	for how := range byte(8) {
		for _, bad := range badFrames {
			f.Add(append([]byte{how}, acquire("k", 1, 1, 7)+release("k", 1)+bad.bytes...))
		}
		f.Add(append([]byte{how}, "abc\n"...))
		f.Add([]byte{how})
		f.Add(append([]byte{how | 5<<3}, acquire("a", 255, 250, 1)+acquire("a", 255, 1, 2)+"\n\n"+release("a", 0)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		synctest.Test(t, func(t *testing.T) { playFuzzed(t, data[0], data[1:]) })
	})
}

func playFuzzed(t *testing.T, how byte, data []byte) {
	w := newWorld(t, Config{})
	c := w.dial()
	if how&1 != 0 {
		c.authenticate("")
	}
	piece := int(how >> 3)
	if piece == 0 {
		piece = len(data)
	}
	for len(data) > 0 {
		n := min(piece, len(data))
		if _, err := c.end.Write(data[:n]); err != nil {
			break // the server has closed already
		}
		synctest.Wait()
		data = data[n:]
	}
	switch how >> 1 % endCount {
	case endFIN:
		c.end.CloseWrite()
	case endClose:
		c.end.Close()
	case endReset:
		c.end.Reset()
	case endSilent:
		// A client that is between frames may be silent for ever.
		time.Sleep(wire.HandshakeTimeout + wire.FrameTimeout)
		synctest.Wait()
		if len(w.seen.reasons()) == 0 {
			c.end.Close()
		}
	}
	time.Sleep(wire.HandshakeTimeout + wire.LingerTimeout)
	synctest.Wait()
	w.seen.checkAllClosed(t)
	if n := len(w.seen.reasons()); n != 1 {
		t.Errorf("the connection closed for %v", w.seen.reasons())
	}
	if left := w.server.Connections(); left != 0 {
		t.Errorf("%d connections are left", left)
	}
	if waiters := w.service.Stats().Waiters; waiters != 0 {
		t.Errorf("%d waiters are left", waiters)
	}
}
