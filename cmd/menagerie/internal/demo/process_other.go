//go:build !unix

package demo

import "os/exec"

func ownGroup(*exec.Cmd) {}

// wasKilled knows only of processes that the demo itself has killed: without signals a
// process that somebody else killed looks like one that failed.
func wasKilled(p *process) bool { return p.doomed }
