// Package wire is the Ticketing wire protocol: what a request and a reply look
// like in bytes, how they are told apart in a stream, how a session is opened,
// and every limit that both sides keep. It knows no connection and no clock.
//
// A session, on one TCP or TLS connection (docs/PROTOCOL.md, sections 1 and 2):
//
//	server                                  client
//	  | -- "SHA-256 <nonce>\n" ----------->  |   challenge
//	  | <- "<digest>\n" -------------------  |   Digest(token, nonce)
//	  | -- "\n" or "L<addr>\n" ----------->  |   the ready frame
//	  | <- A wait lease owner key "\n" ----  |   acquire
//	  | -- A token owner key "\n" -------->  |   granted; or T, B
//	  | <- R token key "\n" ---------------  |   release
//	  | -- R token key "\n" -------------->  |   released; or N
//	  | -- L, M, E ----------------------->  |   at any time
//
// All integers are big-endian. A header may contain the byte of a newline, so a
// decoder takes the header by count and only then looks for the newline.
package wire
