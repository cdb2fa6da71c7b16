// Package zkmap holds tests only: what Map and Set of zkmap promise.
package zkmap
