// Package types holds tests only: a path belongs to one type.
package types
