//go:build !unix

package main

import "os"

func standardError() *os.File { return os.Stderr }
