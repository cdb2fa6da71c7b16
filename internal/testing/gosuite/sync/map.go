package sync

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zkmap"
)

// Map is sync.Map for keys and values that can be text: zkmap.Map has one type of each, contexts, and errors.
type Map struct {
	all [sessions]*zkmap.Map[string, string]
}

func NewMap() *Map {
	m, path := new(Map), play.Path()
	for i := range m.all {
		m.all[i] = zkmap.New[string, string](play.Session(i), path)
	}
	return m
}

func (m *Map) at() *zkmap.Map[string, string] { return m.all[play.Turn(sessions)] }

var forever = context.Background()

func (m *Map) Load(key any) (any, bool) {
	v, ok, err := m.at().Load(forever, text(key))
	return value(v, ok, err)
}

func (m *Map) Store(key, v any) { must(m.at().Store(forever, text(key), text(v))) }

func (m *Map) LoadOrStore(key, v any) (any, bool) {
	actual, loaded, err := m.at().LoadOrStore(forever, text(key), text(v))
	got, _ := value(actual, true, err)
	return got, loaded
}

func (m *Map) LoadAndDelete(key any) (any, bool) {
	v, loaded, err := m.at().LoadAndDelete(forever, text(key))
	return value(v, loaded, err)
}

func (m *Map) Delete(key any) { must(m.at().Delete(forever, text(key))) }

func (m *Map) Swap(key, v any) (any, bool) {
	previous, loaded, err := m.at().Swap(forever, text(key), text(v))
	return value(previous, loaded, err)
}

func (m *Map) CompareAndSwap(key, old, v any) bool {
	swapped, err := m.at().CompareAndSwap(forever, text(key), text(old), text(v))
	must(err)
	return swapped
}

func (m *Map) CompareAndDelete(key, old any) bool {
	deleted, err := m.at().CompareAndDelete(forever, text(key), text(old))
	must(err)
	return deleted
}

func (m *Map) Range(f func(key, v any) bool) {
	must(m.at().Range(forever, func(k, v string) bool { return f(untext(k), untext(v)) }))
}

func (m *Map) Clear() { must(m.at().Clear(forever)) }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func value(v string, ok bool, err error) (any, bool) {
	must(err)
	if !ok {
		return nil, false
	}
	return untext(v), true
}

// text begins with the type of v.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "n"
	case string:
		return "s" + v
	case int:
		return "i" + strconv.Itoa(v)
	case int64:
		return "l" + strconv.FormatInt(v, 10)
	case struct{}:
		return "e"
	}
	panic(fmt.Sprintf("a %T cannot be kept", v))
}

func untext(s string) any {
	n, _ := strconv.ParseInt(s[1:], 10, 64)
	switch s[0] {
	case 's':
		return s[1:]
	case 'i':
		return int(n)
	case 'l':
		return n
	case 'e':
		return struct{}{}
	}
	return nil
}
