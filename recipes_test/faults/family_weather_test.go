package faults_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zktest"
)

// weather are the faults.
func (m *storm) weather() map[string]func(*rapid.T) {
	w := m.k.world
	faults := map[string]func(*rapid.T){
		"cancel":       func(t *rapid.T) { a := m.choose(t, func(a *actor) bool { return a.does() != "" }); a.c.cancel(a.name) },
		"advance":      func(t *rapid.T) { time.Sleep(someTime(t, 12*time.Second)) },
		"advance a ms": func(*rapid.T) { time.Sleep(ms) },
		"disconnect":   func(t *rapid.T) { w.srv.Disconnect(m.client(t).s.ID()) },
		"isolate":      func(t *rapid.T) { w.isolate(m.client(t), someTime(t, longer)) },
		"make deaf":    func(t *rapid.T) { w.later(someTime(t, longer), w.srv.DropReplies(m.client(t).s.ID())) },
		"slow down": func(t *rapid.T) {
			w.srv.Delay(m.client(t).s.ID(), someTime(t, 3*time.Second), someTime(t, 3*time.Second))
		},
		"freeze": func(t *rapid.T) {
			w.later(someTime(t, longer), w.srv.Freeze())
		},
		"restart": func(t *rapid.T) {
			down := someTime(t, shorter)
			w.srv.Stop()
			m.down = time.Now().Add(down)
			w.later(down, w.srv.Restart)
		},
		"strike": func(t *rapid.T) {
			f := rapid.SampledFrom([]zktest.Fate{zktest.LoseRequest, zktest.LoseReply, zktest.Fail, zktest.Duplicate}).Draw(t, "fate")
			c := m.client(t)
			c.mu.Lock()
			c.next = append(c.next, zktest.Verdict{Fate: f, Code: zktest.CodeMarshalling})
			c.mu.Unlock()
		},
	}
	if m.rude {
		faults["expire"] = func(t *rapid.T) { w.srv.Expire(m.client(t).s.ID()) }
		faults["delete a node"] = m.deletes
	}
	return faults
}

// deletes takes any entry of any queue away.
func (m *storm) deletes(t *rapid.T) {
	var nodes []string
	for _, dir := range m.k.dirs() {
		for _, name := range m.k.srv.Children(dir) {
			nodes = append(nodes, dir+"/"+name)
		}
	}
	if len(nodes) == 0 || !time.Now().After(m.down) {
		t.Skip("nothing to delete")
	}
	m.k.srv.Delete(nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "node")])
}
