package coretest

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"
)

// holding is the model's state of one key: its current grant, or none, and the greatest
// token so far.
type holding struct {
	token   uint64        // 0 when the key is free, as far as answers tell
	until   time.Duration // its lease can't have ended before
	highest uint64
}

// lockModel is a lock as its users see it, one key at a time.
//
// A lease ends in the machine's time, which clients don't see; but that never runs ahead
// of real time, and a lease begins after its acquire was asked for. So a grant can't have
// ended by itself before the acquire's call and the lease; after that it may have, or not
// yet, and both are legal.
//
// An operation whose outcome is unknown may take effect at any time after its call, or
// never: its return is put at the end of time. A release has its effect wherever it is put
// (at the very end none is seen). An acquire has none: when it was granted, the service may
// have given it back at once, so whatever others are told with it they may be told without.
var lockModel = porcupine.Model{
	Init: func() any { return holding{} },
	Step: func(state, input, _ any) (bool, any) {
		s, o := state.(holding), input.(*Operation)
		mayHaveEnded := s.token == 0 || o.end.at >= s.until
		switch o.Outcome {
		case Granted:
			return mayHaveEnded && o.Token > s.highest, holding{o.Token, o.call.at + o.Lease, o.Token}
		case Released:
			return s.token == o.Token, holding{highest: s.highest}
		case NotCurrent:
			return s.token != o.Token || mayHaveEnded, s
		case Unknown:
			if !o.acquire() && s.token == o.Token {
				s.token = 0
			}
		}
		return true, s
	},
	DescribeOperation: func(input, _ any) string { return input.(*Operation).String() },
}

// checkTimeout bounds the search for an order of one key's operations, in real time where
// there is no bubble. A search that takes longer proves nothing either way.
const checkTimeout = time.Minute

// CheckModel says which key's operations have no order that a lock could have had.
func CheckModel(operations []Operation) error {
	keys := map[string][]porcupine.Operation{}
	for i := range operations {
		o := &operations[i]
		end := o.end.place
		if o.Outcome == Unknown {
			o.end.at = math.MaxInt64
			end = math.MaxInt64
		}
		keys[o.Key] = append(keys[o.Key], porcupine.Operation{
			ClientId: o.Client, Input: o, Call: o.call.place, Return: end,
		})
	}
	for key, history := range keys {
		if porcupine.CheckOperationsTimeout(lockModel, history, checkTimeout) == porcupine.Illegal {
			return fmt.Errorf("the operations of %s have no order that a lock could have had", key)
		}
	}
	return nil
}
