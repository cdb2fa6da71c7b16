package zktest_test

import (
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// step begins or ends a fault, or lets time pass.
func (s *storm) step() {
	c := s.clients[s.luck.IntN(len(s.clients))]
	id := c.conn.SessionID()
	if s.e != nil {
		s.srv = s.e.Server(s.luck.IntN(s.e.Len()))
	}
	switch k := s.luck.IntN(20); {
	case k < 6:
		d := time.Duration(s.luck.IntN(1500)) * time.Millisecond
		s.say("wait %v", d)
		time.Sleep(d)
	case k < 10:
		if len(s.undo) > 0 {
			s.end(s.luck.IntN(len(s.undo)))
		}
	case k < 14:
		s.intercept(id)
	case k < 16:
		s.say("disconnect %d", c.i)
		s.disconnect(id)
	case k == 16 && s.e != nil:
		s.between()
	default:
		s.fault(c, id)
	}
	if s.luck.IntN(2) == 0 {
		synctest.Wait()
	}
}

func (s *storm) disconnect(id int64) {
	if s.e != nil {
		s.e.Disconnect(id)
		return
	}
	s.srv.Disconnect(id)
}

// between lets something happen between the members.
func (s *storm) between() {
	i := s.luck.IntN(s.e.Len())
	switch s.luck.IntN(3) {
	case 0:
		if i != s.e.Leader() {
			s.say("lag %d", i)
			s.ends(fmt.Sprintf("lag %d", i), s.e.Lag(i))
		}
	case 1:
		s.say("isolate %d", i)
		s.ends(fmt.Sprintf("isolate %d", i), s.e.Isolate(i))
	case 2:
		all := true
		for k := range s.e.Len() {
			all = all && s.e.Serving(k)
		}
		if all && len(s.undo) == 0 {
			s.say("elect %d", i)
			s.e.ElectLeader(i)
		}
	}
}

func (s *storm) end(i int) {
	f := s.undo[i]
	s.undo = append(s.undo[:i:i], s.undo[i+1:]...)
	f()
}

func (s *storm) ends(what string, f func()) {
	s.undo = append(s.undo, func() {
		s.say("end of %s", what)
		f()
	})
}

func (s *storm) fault(c *stormClient, id int64) {
	d, srv := time.Duration(s.luck.IntN(800))*time.Millisecond, s.srv
	what := fmt.Sprintf("%s %d", []string{
		"freeze", "freeze", "freeze", "stop", "restart", "partition", "drop requests of", "drop replies of", "delay", "refuse", "expire",
	}[s.luck.IntN(11)], c.i)
	s.say("%s", what)
	switch strings.Fields(what)[0] {
	case "freeze":
		s.ends(what, srv.Freeze())
	case "stop":
		srv.Stop()
		s.ends(what, srv.Restart)
	case "restart":
		srv.Restart()
	case "partition":
		s.ends(what, srv.Partition(id))
	case "drop":
		if strings.Contains(what, "requests") {
			s.ends(what, srv.DropRequests(id))
		} else {
			s.ends(what, srv.DropReplies(id))
		}
	case "delay":
		srv.Delay(id, d, d/2)
		s.ends(what, func() { srv.Delay(id, 0, 0) })
	case "refuse":
		s.ends(what, srv.Refuse())
	case "expire":
		go srv.Expire(id) // it waits for a thaw
	}
}

// intercept puts a rule to work that says any of all that a rule can say.
func (s *storm) intercept(id int64) {
	op := []zktest.Op{
		zktest.Any, zktest.Any, zktest.Create, zktest.Delete, zktest.Exists, zktest.GetData, zktest.Multi, zktest.Connect,
		zktest.Ping, zktest.SetWatches, zktest.CloseSession,
	}[s.luck.IntN(11)]
	rule := zktest.On(op, "**").Maybe()
	what := fmt.Sprintf("rule On(%v)", op)
	put := func(text string, f func()) {
		what += text
		f()
	}
	if s.luck.IntN(2) == 0 {
		n := 1 + s.luck.IntN(3)
		put(fmt.Sprintf(".Times(%d)", n), func() { rule.Times(n) })
	}
	if s.luck.IntN(3) == 0 {
		n := 1 + s.luck.IntN(4)
		put(fmt.Sprintf(".Nth(%d)", n), func() { rule.Nth(n) })
	}
	if s.luck.IntN(3) == 0 {
		put(".Session", func() { rule.Of(id) })
	}
	switch s.luck.IntN(8) {
	case 0:
		put(".LoseRequest()", func() { rule.LoseRequest() })
	case 1, 2:
		put(".LoseReply()", func() { rule.LoseReply() })
	case 3:
		put(".Duplicate()", func() { rule.Duplicate() })
	case 4:
		put(".Error(zktest.CodeThrottled)", func() { rule.Error(zktest.CodeThrottled) })
	}
	d := time.Duration(1+s.luck.IntN(3000)) * time.Millisecond
	switch s.luck.IntN(6) {
	case 0:
		put(".Hold()", func() { rule.Hold() })
	case 1:
		put(".Hold().Queued()", func() { rule.Hold().Queued() })
	case 2:
		put(fmt.Sprintf(".Delay(%v)", d), func() { rule.Delay(d) })
	case 3, 4:
		put(fmt.Sprintf(".Delay(%v).Queued()", d), func() { rule.Delay(d).Queued() })
	}
	if s.luck.IntN(4) == 0 {
		put(fmt.Sprintf(".DelayReply(%v)", d), func() { rule.DelayReply(d) })
	}
	s.say("%s", what)
	atWork := s.srv.Intercept
	if s.e != nil {
		atWork = s.e.Intercept
	}
	s.ends(what, atWork(rule).Remove)
}
