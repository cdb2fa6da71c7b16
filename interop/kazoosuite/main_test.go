//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWorstReportOfATestCounts(t *testing.T) {
	got := read("passed a.py::one\nskipped a.py::two\npassed a.py::three\nfailed a.py::three\n")
	require.Equal(t, outcomes{"a.py::one": "passed", "a.py::two": "skipped", "a.py::three": "failed"}, got)
	require.Equal(t, 1, got.passed())
}

func TestOnlyATestThatARealServerPassesMakesOursWorse(t *testing.T) {
	excused["e"] = "a reason"
	defer delete(excused, "e")
	require.True(t, compare(outcomes{"a": "passed", "b": "passed", "c": "failed", "e": "failed"}, outcomes{"a": "passed", "b": "failed", "c": "failed", "e": "passed"}))
	require.False(t, compare(outcomes{"a": "failed"}, outcomes{"a": "passed"}))
	require.False(t, compare(outcomes{"a": "skipped"}, outcomes{"a": "passed"}))
	require.False(t, compare(outcomes{}, outcomes{"a": "passed"}))
	require.False(t, compare(outcomes{"a": "failed"}, outcomes{"a": "failed"}), "nothing was compared")
}

func TestAShutDoorThrowsClientsOutAndAnOpenOneLetsThemIn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() { // the server says back what it hears
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				line, _ := bufio.NewReader(c).ReadString('\n')
				fmt.Fprint(c, line)
				_, _ = c.Read(make([]byte, 1))
			}()
		}
	}()
	d, err := openDoor(l.Addr().String())
	require.NoError(t, err)
	defer d.shut()
	for range 2 {
		c, err := net.Dial("tcp", d.address)
		require.NoError(t, err)
		fmt.Fprintln(c, "hello")
		said := bufio.NewReader(c)
		line, err := said.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", line)
		d.shut()
		_, err = said.ReadByte()
		require.Error(t, err)
		_, err = net.Dial("tcp", d.address)
		require.Error(t, err)
		require.NoError(t, d.open())
		require.NoError(t, d.open())
		require.NoError(t, c.Close())
	}
}
