//go:build !unix

package cluster

import "errors"

// Pause fails: this system cannot stop a process.
func (p *Process) Pause() error { return errors.ErrUnsupported }

// Continue undoes Pause.
func (p *Process) Continue() error { return errors.ErrUnsupported }
