package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ticketing-io/ticketing/client"
)

// Exit codes of every command but run. 3, 4 and 6 are of those that take and release
// locks, 7 is of those that change a cluster.
const (
	exitOK            = 0
	exitError         = 1
	exitUsage         = 2
	exitTimeout       = 3
	exitBusy          = 4
	exitIndeterminate = 5
	exitNotCurrent    = 6
	exitRefused       = 7
)

// Exit codes of run for what is not its command's own end. They stand in a row
// that programs hardly use, below the 126 and 127 of a shell.
const (
	runTimeout       = 120
	runBusy          = 121
	runIndeterminate = 122
	runLost          = 123
	runError         = 124
	runNotStarted    = 125
)

// signalBase is what a shell adds to the number of the signal that ended a
// command.
const signalBase = 128

// exitCode is a row of the tables that help, documents and tests share.
type exitCode struct {
	code string
	text string
}

var exitCodes = []exitCode{
	{"0", "done"},
	{"1", "error: nothing was acquired or released; the configuration has faults; the server did not start"},
	{"2", "usage: the command line is wrong"},
	{"3", "timeout: the key was held by others for the whole wait; certainly not acquired"},
	{"4", "busy: the server refused for want of capacity; certainly not acquired"},
	{"5", "indeterminate: the request may have been carried out"},
	{"6", "not current: the token is no longer the key's; released before, or its lease ended"},
	{"128+n", "ended by signal n before anything was acquired"},
}

var runExitCodes = []exitCode{
	{"0-255", "the command's own; 128+n when signal n ended it"},
	{"120", "timeout: the key was held by others for the whole wait; the command was not started"},
	{"121", "busy: the server refused for want of capacity; the command was not started"},
	{"122", "indeterminate: the lock may be held by nobody until its lease ends; the command was not started"},
	{"123", "lost: the lease was about to end and the command was ended or not started, or the lock was gone at its release"},
	{"124", "error: usage, not connected, refused, too little lease left, or other; the command was not started"},
	{"125", "the command could not be started"},
	{"128+n", "ended by signal n before the lock was got; the command was not started"},
}

// clusterExitCodes are those of members, snapshot and recover.
var clusterExitCodes = []exitCode{
	{"0", "done"},
	{"1", "error: no node could be asked, nobody leads, or a file is faulty; nothing was changed"},
	{"2", "usage: the command line is wrong"},
	{"5", "indeterminate: the change may have been made, or may still be"},
	{"7", "refused: the cluster does not do that, with its reason; nothing was changed"},
	{"128+n", "ended by signal n; nothing was changed"},
}

func exitCodeLines(codes []exitCode) string {
	var b strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&b, "  %-6s %s\n", c.code, c.text)
	}
	return b.String()
}

// advice is the second and third sentence of an error: what it means, what to
// do.
type advice struct{ means, todo string }

// outcome says what a kind of the client's errors means for a command.
type outcome struct {
	err     error
	kind    string // its name in bench's figures
	exit    int
	run     int
	acquire advice
	release advice
}

// outcomes is searched from the top: an error may be of several kinds, and the
// first one here is what the user needs to know. So an unknown outcome comes
// before its cause, and a missing server before the timeout that it led to.
var outcomes = []outcome{
	{client.ErrIndeterminate, "indeterminate", exitIndeterminate, runIndeterminate,
		advice{"The lock may have been granted: if so it is held by nobody until its lease ends.", "Don't do the work. Try again; the key is free when that lease has ended."},
		advice{"The lock may have been released, or not.", "Try again: a release names its grant, so it can't hit another one."}},
	{client.ErrAuthRefused, "auth_refused", exitError, runError,
		advice{"The server does not know this client token. Nothing was acquired.", "Give the server's token with --token-file, TICKETING_TOKEN_FILE or TICKETING_TOKEN: the token alone, without its name."},
		advice{"The server does not know this client token. Nothing was released.", "Give the server's token with --token-file, TICKETING_TOKEN_FILE or TICKETING_TOKEN: the token alone, without its name."}},
	{client.ErrNotConnected, "not_connected", exitError, runError,
		advice{"No server could be asked. Nothing was acquired.", "Check that a server runs there (ticketing serve), and --addr, --tls and --ca."},
		advice{"No server could be asked. Nothing was released; the lease's end frees the key.", "Check that a server runs there (ticketing serve), and --addr, --tls and --ca."}},
	{client.ErrBusy, "busy", exitBusy, runBusy,
		advice{"The server has no room, is stopping, or grants nothing yet after a restore. Nothing was acquired.", "Wait a little and try again."},
		advice{"The server has no room, or is stopping. Nothing was released.", "Wait a little and try again."}},
	{client.ErrClientCapacity, "client_capacity", exitError, runError,
		advice{"Too many requests of this process were pending. Nothing was acquired.", "Use fewer at once."},
		advice{"Too many requests of this process were pending. Nothing was released.", "Use fewer at once."}},
	{client.ErrTimeout, "timeout", exitTimeout, runTimeout,
		advice{"Others held the key all the time that was given. Nothing was acquired.", "Try again, or wait longer with --wait (at most 255s)."},
		advice{"The release could not be sent in time. The lease's end frees the key.", "Try again."}},
	{client.ErrNotCurrent, "not_current", exitNotCurrent, runLost,
		advice{"The lock is no longer held.", "Acquire it again."},
		advice{"The lock was released before, or its lease has ended; somebody else may hold it now.", "Nothing is left to release. Check the work that was done under this token."}},
	{client.ErrInsufficientLease, "insufficient_lease", exitError, runError,
		advice{"Too little of the lease was left for the work. The lock was given back.", "Ask for a longer --lease (at most 250s). A lock that was waited for may have up to a second less, so 3s is the least that is of use then."},
		advice{}},
	{client.ErrInvalidKey, "invalid_key", exitUsage, runError,
		advice{"A key is 1 to 128 bytes of UTF-8 without spaces and line breaks.", "Name the lock by another key."},
		advice{"A key is 1 to 128 bytes of UTF-8 without spaces and line breaks.", "Give the key that was acquired."}},
	{client.ErrUnsupportedDuration, "unsupported_duration", exitUsage, runError,
		advice{"A wait is 0s to 255s and a lease 1s to 250s. A lease can't be renewed.", "Use times in that range; cut longer work into steps."},
		advice{}},
	{client.ErrConfig, "config", exitUsage, runError,
		advice{"No server was asked.", "Correct the flags or the files they name."},
		advice{"No server was asked.", "Correct the flags or the files they name."}},
	{client.ErrProtocol, "protocol", exitError, runError,
		advice{"The server did not answer as a Ticketing server does. Nothing was acquired.", "Check --addr and --tls, and that client and server fit each other."},
		advice{"The server did not answer as a Ticketing server does. Nothing was released.", "Check --addr and --tls, and that client and server fit each other."}},
	{client.ErrCancelled, "cancelled", exitError, runError,
		advice{"Nothing was acquired.", "Try again."},
		advice{"Nothing was released.", "Try again."}},
	{client.ErrClosed, "closed", exitError, runError,
		advice{"Nothing was acquired.", "Try again."},
		advice{"Nothing was released.", "Try again."}},
}

// unknownError stands for an error that is in no row.
var unknownError = outcome{nil, "other", exitError, runError,
	advice{"Nothing was acquired.", "Try again."},
	advice{"The lock may still be held; its lease's end frees it.", "Try again."}}

// outcomeOf returns the row that an error of the client belongs to.
func outcomeOf(err error) outcome {
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o
		}
	}
	return unknownError
}
