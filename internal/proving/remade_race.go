//go:build race

package proving

// Remade says whether tests may have a tapped connection made anew. The client library then races with itself if there are
// live watches (lastZxid, between its recvLoop and sendSetWatches), so they may not where races are detected. Our own
// connections do not come to that.
const Remade = false
