package follow

import (
	"errors"
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// entry is a node that was reported.
type entry struct {
	name string
	up   *entry
	kids map[string]*entry

	made, changed int64 // the zxids of its creation and of its last change
	// listed is the zxid of the last change of its children when they were listed; -1 if they were not. Later children have events,
	// so it only says whether the children must be listed after a lost connection.
	listed int64

	node Node // as it was reported last, if the tree keeps that

	data, children *zkconn.Watch // of a tree without a recursive watch
}

// find returns the entries of a path and of its parent.
func (t *tree) find(path string) (en, up *entry) {
	if path == t.path {
		return t.root, nil
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(t.path, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return nil, nil
	}
	en = t.root
	for rest != "" && en != nil {
		name := rest[1:]
		rest = ""
		if at := strings.IndexByte(name, '/'); at >= 0 {
			name, rest = name[:at], name[at:]
		}
		up, en = en, en.kids[name]
		if rest != "" && en == nil {
			return nil, nil
		}
	}
	return en, up
}

// revise makes jobs for everything that is known. once means that the watches must be set, too.
func (t *tree) revise(en *entry, path string, once bool) {
	if once {
		t.jobs.add(job{path, read})
		t.jobs.add(job{path, list})
	} else {
		t.jobs.add(job{path, verify})
	}
	for _, kid := range en.kids {
		t.revise(kid, below(path, kid.name), once)
	}
}

// hidden reports whether a read says that the session cannot see a node there.
func (t *tree) hidden(path string, err error) bool {
	return errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) && path != t.path
}

// looked handles the data of a node.
func (l *link) looked(path string, c zkconn.Content, w *zkconn.Watch, err error) error {
	t := l.t
	if t.hidden(path, err) {
		if errors.Is(err, zk.ErrNoAuth) {
			t.secret[path] = struct{}{}
		} else {
			delete(t.secret, path)
		}
		return l.gone(path)
	}
	if err != nil {
		return err
	}
	delete(t.secret, path)
	en, up := t.find(path)
	if up == nil && path != t.path {
		// The parent is not known: it has yet to be read, or is gone. Once it is known, its children are listed. If the session could
		// not read a node above, that may have changed.
		l.unwatch(w)
		t.readSecretAbove(path)
		return nil
	}
	if en != nil && en.made != c.Stat.Czxid {
		if err := l.gone(path); err != nil {
			return err
		}
		en = nil
	}
	kind := Changed
	switch {
	case en == nil:
		kind = Created
		en = t.insert(path, up, c.Stat)
		if l.once || c.Stat.NumChildren > 0 {
			t.jobs.add(job{path, list})
		}
	case en.changed == c.Stat.Mzxid:
		kind = 0
	}
	en.changed = c.Stat.Mzxid
	l.keep(&en.data, w)
	if kind == 0 {
		return nil
	}
	if t.keep {
		en.node = Node(c)
	}
	return t.report(Event{Kind: kind, Path: path, Data: c.Data, Stat: c.Stat})
}

// readSecretAbove makes a job for the node above path that the session could not read, if there is one.
func (t *tree) readSecretAbove(path string) {
	for up := path; len(up) > len(t.path); up = up[:strings.LastIndexByte(up, '/')] {
		if _, there := t.secret[up]; there {
			t.jobs.add(job{up, read})
			return
		}
	}
}

// insert adds a node that is new.
func (t *tree) insert(path string, up *entry, st *zk.Stat) *entry {
	en := &entry{up: up, made: st.Czxid, listed: -1}
	if st.NumChildren == 0 {
		en.listed = st.Pzxid
	}
	if up == nil {
		t.root = en
		return en
	}
	en.name = strings.Clone(path[strings.LastIndexByte(path, '/')+1:])
	if up.kids == nil {
		up.kids = make(map[string]*entry)
	}
	up.kids[en.name] = en
	return en
}

// verified handles the Stat of a node that is known.
func (l *link) verified(path string, st *zk.Stat, _ *zkconn.Watch, err error) error {
	t := l.t
	en, _ := t.find(path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return l.gone(path)
	case err != nil:
		return err
	case en == nil:
		return nil
	}
	if en.made != st.Czxid || en.changed != st.Mzxid {
		t.jobs.add(job{path, read})
	}
	if en.made == st.Czxid && en.listed != st.Pzxid {
		t.jobs.add(job{path, list})
	}
	return nil
}

// listed handles the names of a node's children.
func (l *link) listed(path string, names zkconn.Listing, w *zkconn.Watch, err error) error {
	t := l.t
	en, _ := t.find(path)
	switch {
	case t.hidden(path, err):
		t.jobs.add(job{path, read}) // finds out whether the node is gone
		return nil
	case err != nil:
		return err
	case en == nil || en.made != names.Stat.Czxid:
		l.unwatch(w)
		t.jobs.add(job{path, read})
		return nil
	}
	there := make(map[string]struct{}, len(names.Names))
	for _, name := range names.Names {
		there[name] = struct{}{}
		if en.kids[name] == nil {
			t.jobs.add(job{below(path, name), read})
		}
	}
	for name := range en.kids {
		if _, ok := there[name]; !ok {
			if err := l.gone(below(path, name)); err != nil {
				return err
			}
		}
	}
	en.listed = names.Stat.Pzxid
	l.keep(&en.children, w)
	return nil
}

// gone removes a node and everything below it.
func (l *link) gone(path string) error {
	t := l.t
	if path == t.path && l.once {
		t.jobs.add(job{path, expect}) // no other watch reports its creation
	}
	en, up := t.find(path)
	if en == nil {
		return nil
	}
	if up == nil {
		t.root = nil
	} else {
		delete(up.kids, en.name)
	}
	return l.buried(en, path)
}

func (l *link) buried(en *entry, path string) error {
	for _, kid := range en.kids {
		if err := l.buried(kid, below(path, kid.name)); err != nil {
			return err
		}
	}
	l.unwatch(en.data)
	l.unwatch(en.children)
	return l.t.report(Event{Kind: Deleted, Path: path, Data: en.node.Data, Stat: en.node.Stat})
}

// expected handles the answer to the watch for the creation of the root.
func (l *link) expected(path string, _ *zk.Stat, _ *zkconn.Watch, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err == nil:
		l.t.jobs.add(job{path, read})
	}
	return err
}

// keep makes w the watch of a node, in place of an earlier one.
func (l *link) keep(at **zkconn.Watch, w *zkconn.Watch) {
	if w == nil {
		return
	}
	if old := *at; old != nil {
		old.Stop() // the server has one watch for both
	}
	*at = w
}

func (l *link) unwatch(w *zkconn.Watch) {
	if w != nil {
		l.e.Unwatch(w)
	}
}

// forget ends the watches of the nodes, which stay known.
func (l *link) forget(en *entry) {
	if en == nil || !l.once {
		return
	}
	l.unwatch(en.data)
	l.unwatch(en.children)
	en.data, en.children = nil, nil
	for _, kid := range en.kids {
		l.forget(kid)
	}
}
