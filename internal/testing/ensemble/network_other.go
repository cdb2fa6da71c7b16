//go:build !linux

package ensemble

import "fmt"

func enterNetwork() error   { return fmt.Errorf("ensemble: %w: this is not Linux", ErrNoNetwork) }
func ownNetwork() string    { return "" }
func forwardPackets() error { return nil }
