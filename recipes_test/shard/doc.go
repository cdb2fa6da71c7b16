// Package zkshard holds tests only: what zkshard promises.
package zkshard
