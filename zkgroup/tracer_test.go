package zkgroup_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// moves is a tracer that keeps what happens to items.
type moves struct {
	mu    sync.Mutex
	began time.Time
	all   []string
}

type caller struct{}

func (*moves) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	return ctx
}
func (*moves) AcquireEnd(context.Context, zksync.AcquireEndData) {}

func (m *moves) Assign(ctx context.Context, d zksync.AssignData) {
	if d.Path != "/g" || d.Name != "batch" || d.Token.IsZero() || ctx.Value(caller{}) != "yes" {
		panic(fmt.Sprint(d))
	}
	text := fmt.Sprintf("%v: %s %s %s", time.Since(m.began).Round(100*time.Millisecond), d.Member, d.Event, d.Item)
	if d.Attempt > 0 {
		text += fmt.Sprint(", failed ", d.Attempt)
	}
	if d.Err != nil {
		text += ", " + d.Err.Error()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, text)
}

func (m *moves) take() []string {
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.all
	m.all = nil
	return all
}

// member is a member of a process of its own, and assigns runs its Assign, until ctx ends.
func member(t *testing.T, srv *zktest.Server, m *moves, id string) (*zksync.Session, func(context.Context, []string, func(context.Context, string) error) <-chan error) {
	s := srv.Session(t, zksync.WithTracer(m))
	g := zkgroup.New(s, "/g", zksync.WithName("batch"))
	joined, err := g.Join(t.Context(), zkgroup.Member{ID: id})
	require.NoError(t, err)
	return s, func(ctx context.Context, items []string, f func(context.Context, string) error) <-chan error {
		ended := make(chan error, 1)
		ctx = context.WithValue(ctx, caller{}, "yes")
		go func() {
			ended <- g.Assign(ctx, joined, items, func(ctx context.Context, item string, _ *zksync.Lease) error { return f(ctx, item) })
		}()
		return ended
	}
}

func TestWhatHappensToAnItemIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Run(t), &moves{began: time.Now()}
		_, assigns := member(t, srv, m, "a")
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		ended := assigns(ctx, []string{"x"}, func(context.Context, string) error {
			time.Sleep(time.Second / 2)
			if runs++; runs < 3 {
				return errors.New("out of cheese")
			}
			return nil
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{
			"0s: a gained x",
			"500ms: a given up x, failed 1, out of cheese",
			"1.5s: a gained x, failed 1",
			"2s: a given up x, failed 2, out of cheese",
			"4s: a gained x, failed 2",
			"4.5s: a done x, failed 2",
		}, m.take())
		cancel()
		require.NoError(t, <-ended)
		require.Empty(t, m.take())
	})
}

// However a run ends, it is said once that its item is given up.
func TestAnItemThatIsGivenUpIsTracedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(cancel context.CancelFunc, srv *zktest.Server, s *zksync.Session)
		f    func(ctx context.Context) error
		want []string
	}{
		"ended": {
			ends: func(cancel context.CancelFunc, _ *zktest.Server, _ *zksync.Session) { cancel() },
			want: []string{"0s: a gained x", "1s: a given up x"},
		},
		"session": {
			ends: func(_ context.CancelFunc, srv *zktest.Server, s *zksync.Session) { srv.Expire(s.ID()) },
			want: []string{"0s: a gained x", "1s: a given up x", "1s: a gained x", "2s: a given up x"},
		},
		"stop": {
			f:    func(context.Context) error { return zkgroup.Stop(nil) },
			want: []string{"0s: a gained x", "0s: a given up x"},
		},
		"exit": {
			f:    func(context.Context) error { runtime.Goexit(); return nil },
			want: []string{"0s: a gained x", "0s: a given up x, the function called runtime.Goexit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, m := zktest.Run(t), &moves{began: time.Now()}
				s, assigns := member(t, srv, m, "a")
				ctx, cancel := context.WithCancel(t.Context())
				f := c.f
				if f == nil {
					f = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				}
				ended := assigns(ctx, []string{"x"}, func(ctx context.Context, _ string) error { return f(ctx) })
				time.Sleep(time.Second)
				if c.ends != nil {
					c.ends(cancel, srv, s)
				}
				time.Sleep(time.Second)
				cancel()
				<-ended
				got := m.take()
				if name == "session" { // in the next session it may be gained twice: once before the end of the old session is known
					again := []string{c.want[2], "1s: a given up x"}
					for len(got) > len(c.want) {
						require.Equal(t, again, got[2:4])
						got = slices.Delete(got, 2, 4)
					}
				}
				require.Equal(t, c.want, got)
			})
		})
	}
}

// An item moves to a member that has come: one gives it up, then the other gains it.
func TestAnItemThatMovesIsTracedAtBothMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Run(t), &moves{began: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		stays := func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		items := []string{"s", "t", "u", "v", "w", "x", "y", "z"}
		_, one := member(t, srv, m, "a")
		ends := []<-chan error{one(ctx, items, stays)}
		require.Len(t, m.take(), len(items))
		time.Sleep(time.Second)
		_, two := member(t, srv, m, "b")
		ends = append(ends, two(ctx, items, stays))
		got := m.take()
		require.NotEmpty(t, got)
		moved := map[string]bool{}
		for _, text := range got {
			item := text[len(text)-1:]
			if moved[item] {
				require.Equal(t, "1s: b gained "+item, text)
			} else {
				require.Equal(t, "1s: a given up "+item, text)
			}
			moved[item] = true
		}
		require.Len(t, got, 2*len(moved))
		cancel()
		for _, ended := range ends {
			require.NoError(t, <-ended)
		}
		require.Len(t, m.take(), len(items))
	})
}

// A lost answer changes nothing.
func TestADoneItemIsTracedOnce(t *testing.T) {
	for name, lose := range map[string]func(*zktest.Rule) *zktest.Rule{"request": (*zktest.Rule).LoseRequest, "reply": (*zktest.Rule).LoseReply} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, m := zktest.Run(t), &moves{began: time.Now()}
				_, assigns := member(t, srv, m, "a")
				ctx, cancel := context.WithCancel(t.Context())
				srv.Intercept(lose(zktest.On(zktest.Create, "/g/**/item-*").Times(1)))
				ended := assigns(ctx, []string{"x"}, func(context.Context, string) error { return nil })
				time.Sleep(time.Second)
				cancel()
				require.NoError(t, <-ended)
				got := m.take()
				require.Len(t, got, 2)
				require.Contains(t, got[0], "gained")
				require.Contains(t, got[1], "done")
			})
		})
	}
}

// Of all items of a group there is one line a minute.
func TestAnItemThatFailsIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		srv := zktest.Run(t)
		s := srv.Session(t, zksync.WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
		g := zkgroup.New(s, "/g")
		m, err := g.Join(t.Context(), zkgroup.Member{ID: "a"})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		require.NoError(t, g.Assign(ctx, m, []string{"x"}, func(context.Context, string, *zksync.Lease) error { return errors.New("out of cheese") }))
		require.Equal(t, 1, strings.Count(lines.String(), "\n"), &lines)
		require.Contains(t, lines.String(), `level=WARN msg="an item failed" path=/g item=x attempt=1 error="out of cheese"`)
	})
}
