//go:build !three

package singleflight

const sessions = 1
