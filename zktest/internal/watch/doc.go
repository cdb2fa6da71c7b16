// Package watch is who watches which paths, and whom an event concerns. Watches are on paths, whether there is a node or
// not; it knows no nodes.
package watch
