package client

import "time"

// trail is the moments of a call that is traced, on the broker's clock; 0 is one that
// has not come. Of several attempts it has the last one's. A call that is not traced
// has none, so its methods take nil. The broker's lock guards it; it is not used
// again, so that a writer may still hold it when its call has its outcome.
type trail struct {
	owner    uint64 // acquire: the number that the server is told
	attempts int    // how often a session took it

	lined   time.Duration // it began to wait for a place among the pending requests
	placed  time.Duration // it got it, having waited
	parked  time.Duration // it began to wait for a connection
	queued  time.Duration // it was handed to a session's writer
	sent    time.Duration // its write began
	written time.Duration // its write ended
}

func (t *trail) line(now time.Duration) {
	if t != nil {
		t.lined = now
	}
}

func (t *trail) place(now time.Duration) {
	if t != nil {
		t.placed = now
	}
}

// park begins an attempt: whoever tries again is parked first, for a pause.
func (t *trail) park(now time.Duration) {
	if t != nil {
		t.parked, t.queued, t.sent, t.written = now, 0, 0, 0
	}
}

func (t *trail) queue(now time.Duration) {
	if t != nil {
		t.queued = now
		t.attempts++
	}
}

func (t *trail) send(now time.Duration) {
	if t != nil {
		t.sent = now
	}
}

// wrote notes that the write that began at sent has ended, unless another attempt has
// begun since.
func (t *trail) wrote(sent, now time.Duration) {
	if t.sent == sent && t.written == 0 {
		t.written = now
	}
}

// answer notes that the answer was read: so the write has ended, though its writer may
// not have come to say so.
func (t *trail) answer(now time.Duration) {
	if t != nil && t.written == 0 {
		t.written = now
	}
}

// stage is one part of a call's way, which became a child of its span.
type stage struct {
	name     string
	from, to time.Duration
}

// stages returns what a call that ended at end did in which order. The last one was
// cut off by the end, or ended with it.
func (t *trail) stages(end time.Duration) []stage {
	var all []stage
	add := func(name string, from time.Duration, to ...time.Duration) {
		if from == 0 {
			return
		}
		s := stage{name, from, end}
		for _, at := range to {
			if at > 0 {
				s.to = at
				break
			}
		}
		all = append(all, s)
	}
	add(spanPlace, t.lined, t.placed)
	add(spanDial, t.parked, t.queued)
	add(spanQueue, t.queued, t.sent)
	add(spanWrite, t.sent, t.written)
	add(spanReply, t.written)
	return all
}
