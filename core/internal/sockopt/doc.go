// Package sockopt sets what package net does not: after how long a peer that has gone
// without a word is given up.
package sockopt
