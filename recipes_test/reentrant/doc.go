// Package reentrant holds tests only: what the locks of package reentrant promise.
package reentrant
