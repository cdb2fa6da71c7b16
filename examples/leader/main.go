// Leader with fenced writes: three candidates, one leads, and counts in a node on the servers. The leader is stopped for
// longer than its session lives (as a long pause of a garbage collector or a virtual machine does). Another one leads
// meanwhile. When the first one goes on, it still believes for a moment that it leads: its write is refused.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

const counter = "/counter"

func main() { cluster.Main(conduct, candidate) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	s, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Conn().Create(counter, []byte("0"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make(map[string]*cluster.Process)
	for _, name := range cluster.Names("candidate", 3) {
		if all[name], err = c.Start(ctx, name); err != nil {
			return err
		}
	}
	election := zkelection.New(s, "/leader", zkelection.Candidate{})
	first, err := leader(ctx, election, "")
	if err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond)
	if err := all[first].Pause(); err != nil {
		return err
	}
	second, err := leader(ctx, election, first)
	if err != nil {
		return err
	}
	c.Say("%s leads", second)
	time.Sleep(500 * time.Millisecond)
	if err := all[first].Continue(); err != nil {
		return err
	}
	time.Sleep(time.Second)
	data, stat, err := s.Conn().Get(counter)
	if err != nil {
		return err
	}
	c.Say("the counter is %s after %d writes: none was made by two leaders", data, stat.Version)
	if string(data) != strconv.Itoa(int(stat.Version)) {
		return errors.New("a write of an old leader has changed the counter")
	}
	return nil
}

// leader waits for a leader that is not the old one.
func leader(ctx context.Context, e *zkelection.Election, old string) (string, error) {
	for now, err := range e.Observe(ctx) {
		if err != nil && !errors.Is(err, zksync.ErrNoLeader) {
			return "", err
		}
		if now.ID != "" && now.ID != old {
			return now.ID, nil
		}
	}
	return "", ctx.Err()
}

// candidate is what each process does.
func candidate(ctx context.Context, s *zksync.Session, name string) error {
	for ctx.Err() == nil {
		err := zkelection.New(s, "/leader", zkelection.Candidate{ID: name}).Run(ctx, func(_ context.Context, l *zksync.Lease) error {
			return count(s, l)
		})
		fmt.Println("leads no more:", err)
	}
	return nil
}

// count is what the leader does. It looks at no context, as careless code does: only Guard protects the counter. Guard
// makes each write one transaction with a check that this very leadership still holds.
func count(s *zksync.Session, l *zksync.Lease) error {
	fmt.Println("leads with token", l.Token())
	for {
		data, _, err := s.Conn().Get(counter)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(data))
		if err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond) // the pause comes here, between the read and the write
		if _, err := l.Guard(context.Background(), &zk.SetDataRequest{Path: counter, Data: []byte(strconv.Itoa(n + 1)), Version: -1}); err != nil {
			fmt.Println("its write was refused:", err)
			return err
		}
	}
}
