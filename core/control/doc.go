// Package control is how a node of a cluster is asked about itself and told to change
// the cluster: HTTP with JSON over the control streams of the nodes' link, which says
// who the other side is (core/link). Nothing else listens for it.
//
//	GET    /status                 the node that is asked, itself
//	GET    /members                every member, as the leader sees it
//	POST   /members                a new member joins as a non-voter
//	DELETE /members/{id}           a member is removed, for good
//	POST   /members/{id}/promote   a non-voter becomes a voter
//	POST   /leader                 the leadership is handed over
//	GET    /snapshot               the replicated state as a file
//	POST   /snapshot               a file takes the place of an unused cluster's state
//
// All but the first are the leader's business. A node that is not the leader passes a
// request on to it, once: a request that was passed on is never passed on again.
//
// An answer that is not 2xx carries an Error, whose class says whether anything may
// have happened.
package control
