package service

import (
	"errors"

	"github.com/ticketing-io/ticketing/core/lock"
)

// maxOrders bounds the orders that wait for an entry. People and the cluster's own
// upkeep give them, a few at a time.
const maxOrders = 64

// Errors of an Order.
var (
	// ErrUnknown: the order may have been carried out, or may be yet.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNotServing: the order was certainly not carried out: this node does not serve.
	ErrNotServing = errors.New("this node does not serve")
	// ErrTooManyOrders: the order was certainly not carried out: too many wait.
	ErrTooManyOrders = errors.New("too many orders wait")
)

// order is a command of the node itself that goes into the next entry.
type order struct {
	command lock.Command
	done    func(lock.Result, error)
}

// Order puts a command of the node itself (a member, the feature level) into the next
// entry. When that is decided, done is called with its result, or with ErrUnknown,
// ErrNotServing or ErrTooManyOrders; once, without a lock of the service, by whichever
// goroutine decided it. It must not block, nor tell the service where it stands.
func (s *Service) Order(cmd lock.Command, done func(lock.Result, error)) {
	s.mu.Lock()
	defer s.unlock()
	switch {
	case s.standing != serving:
		s.answerOrder(done, lock.Result{}, ErrNotServing)
	case len(s.orders) >= maxOrders:
		s.answerOrder(done, lock.Result{}, ErrTooManyOrders)
	default:
		s.orders = append(s.orders, order{command: cmd, done: done})
		s.pump(1, s.now())
		s.arm()
	}
}

// sealOrders puts the orders into the entry.
func (s *Service) sealOrders() {
	for _, o := range s.orders {
		s.entry.Commands = append(s.entry.Commands, o.command)
		s.proposals = append(s.proposals, undertaken{done: o.done})
	}
	s.orders = drop(s.orders, len(s.orders))
}

// answerOrder has done called when the lock is given back.
func (s *Service) answerOrder(done func(lock.Result, error), r lock.Result, err error) {
	s.called = append(s.called, func() { done(r, err) })
}
