package control

import (
	"errors"
	"fmt"
)

// Class says whether something may have happened.
type Class string

// The classes of errors.
const (
	// Refused: nothing happened, and the same request will be refused again until
	// something else changes.
	Refused Class = "refused"
	// Elsewhere: nothing happened; another node must be asked, or the same one later.
	Elsewhere Class = "elsewhere"
	// Unknown: it may have happened, or may still happen.
	Unknown Class = "unknown"
)

// ErrUnreachable is behind an Error of class Elsewhere when the node could not be
// asked at all.
var ErrUnreachable = errors.New("can't be reached")

// Error is the answer to a request that was not carried out, or perhaps.
type Error struct {
	Class Class  `json:"class"`
	Text  string `json:"text"`           // what happened, in lower case
	Todo  string `json:"todo,omitempty"` // what to do about it: sentences
	// Leader is who must be asked, of class Elsewhere; zero when nobody leads, or the
	// node does not know who.
	Leader Peer `json:"leader,omitzero"`
	cause  error
}

// Error returns what happened.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the error behind it, where it came up.
func (e *Error) Unwrap() error { return e.cause }

// Refuse returns an error of class Refused. todo says what to do, in sentences.
func Refuse(todo, format string, args ...any) *Error { return newError(Refused, todo, format, args) }

// Doubt returns an error of class Unknown.
func Doubt(todo, format string, args ...any) *Error { return newError(Unknown, todo, format, args) }

// Ask returns an error of class Elsewhere: the leader must be asked, or nobody can be
// when it is zero.
func Ask(leader Peer) *Error {
	if leader.ID == "" {
		return newError(Elsewhere, "Try again in a second. If nobody leads then, most voters are down or can't reach each other: start them. If they are gone for good: ticketing recover --help.", "no leader is known", nil)
	}
	e := newError(Elsewhere, "Ask that node.", "node %s leads, not the one that was asked", []any{leader.ID})
	e.Leader = leader
	return e
}

func newError(c Class, todo, format string, args []any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Class: c, Text: err.Error(), Todo: todo, cause: err}
}

// ClassOf returns an error's class: Unknown when it does not say.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Unknown
}
