package coretest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// CheckAnswers holds what clients were told against what the nodes applied, and against
// each other.
func CheckAnswers(operations []Operation, tenures []Tenure) error {
	return errors.Join(
		checkGrants(operations, tenures),
		checkTokenOrder(operations),
		checkHolders(operations),
		checkTurns(operations),
	)
}

// checkGrants: what was told happened as it was told, and what was refused did not happen.
func checkGrants(operations []Operation, tenures []Tenure) error {
	granted, tokens := map[uint64]*Tenure{}, map[uint64]*Tenure{}
	for i := range tenures {
		granted[tenures[i].Owner], tokens[tenures[i].Token] = &tenures[i], &tenures[i]
	}
	for i := range operations {
		o := &operations[i]
		t := granted[o.Owner]
		switch o.Outcome {
		case Granted:
			if t == nil || t.Token != o.Token || t.Key != o.Key || t.Begun > o.end.at {
				return fmt.Errorf("%v, but no node had applied that", o)
			}
		case TimedOut, Busy:
			if t != nil {
				return fmt.Errorf("%v, but it was granted by token %d at %v", o, t.Token, t.Begun)
			}
		case Released:
			if t := tokens[o.Token]; t == nil || !t.Released || t.Ended > o.end.at || t.Key != o.Key {
				return fmt.Errorf("%v, but no node had applied that", o)
			}
		}
	}
	return nil
}

// checkTokenOrder: a grant that is asked for after another was told has a greater token,
// whatever their keys.
func checkTokenOrder(operations []Operation) error {
	var told []*Operation
	for i := range operations {
		if operations[i].Outcome == Granted {
			told = append(told, &operations[i])
		}
	}
	asked := slices.Clone(told)
	slices.SortFunc(told, func(a, b *Operation) int { return cmp.Compare(a.end.place, b.end.place) })
	slices.SortFunc(asked, func(a, b *Operation) int { return cmp.Compare(a.call.place, b.call.place) })
	var greatest *Operation
	for _, o := range asked {
		for len(told) > 0 && told[0].end.place < o.call.place {
			if greatest == nil || told[0].Token > greatest.Token {
				greatest = told[0]
			}
			told = told[1:]
		}
		if greatest != nil && o.Token <= greatest.Token {
			return fmt.Errorf("tokens fall:\n%v\n%v", greatest, o)
		}
	}
	return nil
}

// checkHolders: no two clients believe at the same time that they hold a key. A client
// believes so from being told until it asks to release, or its lease, counted from when it
// asked, has run out.
func checkHolders(operations []Operation) error {
	type belief struct {
		o     *Operation
		until time.Duration
	}
	beliefs := map[string][]belief{}
	released := map[uint64]time.Duration{}
	for i := range operations {
		if o := &operations[i]; !o.acquire() {
			if at, ok := released[o.Token]; !ok || o.call.at < at {
				released[o.Token] = o.call.at
			}
		}
	}
	for i := range operations {
		o := &operations[i]
		if o.Outcome != Granted {
			continue
		}
		until := o.call.at + o.Lease
		if at, ok := released[o.Token]; ok {
			until = min(until, at)
		}
		if o.end.at < until {
			beliefs[o.Key] = append(beliefs[o.Key], belief{o, until})
		}
	}
	for _, list := range beliefs {
		slices.SortFunc(list, func(a, b belief) int { return cmp.Compare(a.o.end.at, b.o.end.at) })
		for i := 1; i < len(list); i++ {
			if list[i].o.end.at < list[i-1].until {
				return fmt.Errorf("held twice:\n%v\n%v", list[i-1].o, list[i].o)
			}
		}
	}
	return nil
}

// checkTurns: of two acquires of a key that wait at the same leader, the second of which
// was asked for when the service had the first, the second is not granted while the first
// still waits.
func checkTurns(operations []Operation) error {
	type queue struct {
		stay int64
		key  string
	}
	queues := map[queue][]*Operation{}
	for i := range operations {
		if o := &operations[i]; o.acquire() && o.Wait > 0 && o.accepted.place != 0 {
			queues[queue{o.Stay, o.Key}] = append(queues[queue{o.Stay, o.Key}], o)
		}
	}
	for _, list := range queues {
		for _, second := range list {
			if second.Outcome != Granted {
				continue
			}
			for _, first := range list {
				behind := first.accepted.place < second.call.place
				decided := first.Outcome == Granted || first.Outcome == TimedOut
				if behind && decided && second.end.place < first.end.place {
					return fmt.Errorf("out of turn:\n%v\n%v", first, second)
				}
			}
		}
	}
	return nil
}

// CheckPatience: every acquire is answered, or its session ends, when its wait has run out
// and the slack with it; a release has the slack alone.
func CheckPatience(operations []Operation, slack time.Duration) error {
	for i := range operations {
		o := &operations[i]
		switch {
		case o.end.place == 0:
			return fmt.Errorf("%v: it was never answered", o)
		case o.end.at-o.call.at > o.Wait+slack:
			return fmt.Errorf("%v: its answer took %v", o, o.end.at-o.call.at)
		}
	}
	return nil
}
