package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
)

var (
	errDuration = errors.New("want a duration such as 500ms, 10s or 1m30s")
	errPositive = errors.New("want more than zero, such as 500ms, 10s or 1m30s")
	errNegative = errors.New("want zero or more, such as 0, 500ms or 10s")
	errTooLong  = errors.New("want at most 24h")
	errCount    = errors.New("want a whole number above zero")
)

// maxDuration keeps what is sent as 32 bits of milliseconds far away from the limit.
const maxDuration = 24 * time.Hour

// positiveDuration is a flag value: more than zero, at least a millisecond (the unit that
// ZooKeeper counts in), at most a day.
type positiveDuration time.Duration

func (d *positiveDuration) Type() string { return "duration" }

// String is empty for zero, which stands for a flag without a default: help shows none then.
func (d *positiveDuration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *positiveDuration) Set(s string) error {
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return errDuration
	case v < time.Millisecond:
		return errPositive
	case v > maxDuration:
		return errTooLong
	}
	*d = positiveDuration(v)
	return nil
}

func (d positiveDuration) value() time.Duration { return time.Duration(d) }

// graceDuration is a flag value: a duration that may be zero.
type graceDuration time.Duration

func (d *graceDuration) String() string { return time.Duration(*d).String() }
func (d *graceDuration) Type() string   { return "duration" }

func (d *graceDuration) Set(s string) error {
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return errDuration
	case v < 0:
		return errNegative
	case v > maxDuration:
		return errTooLong
	}
	*d = graceDuration(v)
	return nil
}

// count is a flag value: a whole number above zero.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }
func (c *count) Type() string   { return "number" }

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return errCount
	}
	*c = count(n)
	return nil
}

// countList is a flag value: numbers of clients, separated by commas.
type countList []int

const maxClients = 10_000

func (l *countList) Type() string { return "numbers" }

func (l *countList) String() string {
	texts := make([]string, len(*l))
	for i, n := range *l {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func (l *countList) Set(s string) error {
	var all countList
	for text := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n <= 0 || n > maxClients {
			return fmt.Errorf("want whole numbers from 1 to %d, separated by commas, such as 1,8,32", maxClients)
		}
		all = append(all, n)
	}
	*l = all
	return nil
}

// noArguments refuses positional arguments in words that say what was found.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, found %q", cmd.Name(), args[0])
	}
	return nil
}

// checkPath refuses what is plainly wrong before anything is connected: a wrong path is a
// wrong command line, whether a server is there or not. What it lets through and
// ZooKeeper does not is refused by zksync, with the same exit code.
func checkPath(path string) error {
	shown := shorten(path)
	switch {
	case path == "":
		return usage("PATH is empty, want something like /locks/nightly")
	case path[0] != '/':
		return usage("path %q does not start with a slash, want something like %q", shown, "/"+shown)
	case path == "/":
		return usage("path \"/\" is the root, name something below it such as /locks/nightly")
	case path[len(path)-1] == '/':
		return usage("path %q ends with a slash: remove it", shown)
	}
	for part := range strings.SplitSeq(path[1:], "/") {
		if part == "" || part == "." || part == ".." {
			return usage("path %q has the empty or relative part %q: write the absolute path", shown, part)
		}
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return usage("path %q has a control character: leave it out", shown)
	}
	return nil
}

// onePath refuses what is not one PATH.
func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage("PATH is missing, such as /locks/nightly")
	case 1:
		return checkPath(args[0])
	}
	return usage("want one PATH, found %q too", args[1])
}

// shorten keeps an error about a very long argument readable.
func shorten(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
