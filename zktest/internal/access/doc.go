// Package access is who may do what with a node: the identities that a client proves, by its address or a password, and
// the access control lists of nodes. It knows neither nodes nor clients.
package access
