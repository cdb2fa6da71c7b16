package faults_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// ledger is what became of calls that have their effect once: those that succeeded, and those of which nobody knows.
type ledger struct {
	mu          sync.Mutex
	sure, maybe []string
}

// enters makes a call with an effect of that name.
func (b *ledger) enters(h *hand, name string, f func(ctx context.Context) error) {
	b.notes(h.does(name, f) == nil, name)
}

// notes notes effects of a call, which are sure or may be.
func (b *ledger) notes(sure bool, names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if sure {
		b.sure = append(b.sure, names...)
	} else {
		b.maybe = append(b.maybe, names...)
	}
}

// storesIf appends a name to a value by the version that it has read.
func storesIf(ctx context.Context, v *zkatomic.Value[[]string], name string) error {
	for {
		now, err := v.LoadSnapshot(ctx)
		if err != nil {
			return err
		}
		if stored, err := v.StoreIf(ctx, now.Version, append(slices.Clone(now.Value), name)); stored || err != nil {
			return err
		}
	}
}

// check compares with the effects: each that is sure is there once, and no other than those that may be.
func (b *ledger) check(r *round, got []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range b.sure {
		if !slices.Contains(got, name) {
			r.wrong("%s succeeded and is not in %v", name, got)
		}
	}
	for i, name := range got {
		if slices.Contains(got[:i], name) || !slices.Contains(b.sure, name) && !slices.Contains(b.maybe, name) {
			r.wrong("%s is there twice, or was never made: %v", name, got)
		}
	}
}

// each has both clients do something three times, with a name for each time.
func (r *round) each(f func(h *hand, i int, name string)) {
	for i, h := range []*hand{r.a, r.b} {
		r.party(time.Duration(i)*2*ms, func() {
			for n := range 3 {
				f(h, i, fmt.Sprint([]string{"a", "b"}[i], n))
				time.Sleep(3 * ms)
			}
		})
	}
}

// ends makes a call for the state that is left.
func ends[T any](r *round, f func(ctx context.Context) (T, error)) (v T) {
	r.last.until("the last look", func(ctx context.Context) (err error) { v, err = f(ctx); return err })
	return v
}

// valueErrands are the types that keep data, and what watches those.
func valueErrands() []errand {
	return []errand{
		{name: "zkatomic.Int64", least: 6, run: func(r *round) {
			var b ledger
			ns := []*zkatomic.Int64{zkatomic.NewInt64(r.a.s, site), zkatomic.NewInt64(r.b.s, site)}
			r.each(func(h *hand, i int, name string) {
				b.enters(h, name, func(ctx context.Context) error { _, err := ns[i].Add(ctx, 1); return err })
			})
			r.checks(func() {
				n := int(ends(r, zkatomic.NewInt64(r.last.s, site).Load))
				if n < len(b.sure) || n > len(b.sure)+len(b.maybe) {
					r.wrong("%d after %d that are sure and %d that are not", n, len(b.sure), len(b.maybe))
				}
			})
		}},
		{name: "zkatomic.Value", least: 6, run: func(r *round) {
			var b ledger
			vs := []*zkatomic.Value[[]string]{zkatomic.NewValue[[]string](r.a.s, site), zkatomic.NewValue[[]string](r.b.s, site)}
			r.each(func(h *hand, i int, name string) {
				b.enters(h, name, func(ctx context.Context) error {
					if i == 1 {
						return storesIf(ctx, vs[i], name)
					}
					_, err := vs[i].Update(ctx, func(old []string, _ bool) ([]string, error) { return append(slices.Clone(old), name), nil })
					return err
				})
			})
			r.checks(func() {
				b.check(r, ends(r, func(ctx context.Context) ([]string, error) {
					v, _, err := zkatomic.NewValue[[]string](r.last.s, site).Load(ctx)
					return v, err
				}))
			})
		}},
		{name: "zkatomic.Sequence", least: 2, run: func(r *round) {
			var b ledger
			qs := []*zkatomic.Sequence{zkatomic.NewSequence(r.a.s, site, zkatomic.WithBlock(2)), zkatomic.NewSequence(r.b.s, site, zkatomic.WithBlock(2))}
			r.each(func(h *hand, i int, name string) {
				_ = h.does(name, func(ctx context.Context) error {
					n, err := qs[i].Next(ctx)
					b.mu.Lock()
					defer b.mu.Unlock()
					if s := fmt.Sprint(n); err == nil && slices.Contains(b.sure, s) {
						r.wrong("%s was given twice", s)
					} else if err == nil {
						b.sure = append(b.sure, s)
					}
					return err
				})
			})
		}},
		{name: "zkatomic.Slots", least: 8, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				x := zkatomic.NewSlots(h.s, site, 1)
				r.party(time.Duration(i)*3*ms, func() {
					h.holds("slot", 1, 10*ms, func(ctx context.Context) (*zksync.Lease, error) { _, l, err := x.Acquire(ctx); return l, err })
				})
			}
		}},
		{name: "zkmap.Map", least: 8, run: func(r *round) {
			var b ledger
			m := []*zkmap.Map[string, string]{zkmap.New[string, string](r.a.s, site), zkmap.New[string, string](r.b.s, site)}
			r.each(func(h *hand, i int, name string) {
				more := name + " and more"
				switch name {
				case "a1", "b0":
					err := h.does(name, func(ctx context.Context) error { return m[i].StoreMany(ctx, map[string]string{name: name, more: more}) })
					b.notes(err == nil, name, more)
				case "b2":
					_ = h.does(name, func(ctx context.Context) error { return m[i].StoreEphemeral(ctx, name, name) })
					b.notes(false, name) // the session may have ended since
				default:
					b.enters(h, name, func(ctx context.Context) error { return m[i].Store(ctx, name, name) })
				}
			})
			r.checks(func() {
				b.check(r, ends(r, func(ctx context.Context) (keys []string, err error) {
					err = zkmap.New[string, string](r.last.s, site).Range(ctx, func(k, _ string) bool { keys = append(keys, k); return true })
					return keys, err
				}))
			})
		}},
		{name: "zkmap.Cache", least: 8, run: func(r *round) {
			m := zkmap.New[string, string](r.a.s, site)
			r.party(0, func() {
				var c *zkmap.Cache[string, string]
				r.b.until("Cached", func(ctx context.Context) (err error) {
					c, err = zkmap.New[string, string](r.b.s, site).Cached(ctx)
					return err
				})
				if c == nil {
					return
				}
				defer c.Close()
				r.a.until("Store", func(ctx context.Context) error { return m.Store(ctx, "k", "1") })
				r.a.until("Store", func(ctx context.Context) error { return m.Store(ctx, "k", "2") })
				r.comes("the copy has it", func() bool {
					v, _ := c.Load("k")
					return v == "2" || r.blow.refuses && c.Age() > timeout // a refusal ends it
				})
			})
		}},
		{name: "zkmap.Set", least: 8, run: func(r *round) {
			var b ledger
			sets := []*zkmap.Set[string]{zkmap.NewSet[string](r.a.s, site), zkmap.NewSet[string](r.b.s, site)}
			r.each(func(h *hand, i int, name string) {
				b.enters(h, name, func(ctx context.Context) error { _, err := sets[i].Add(ctx, name); return err })
			})
			r.checks(func() {
				b.check(r, ends(r, func(ctx context.Context) (keys []string, err error) {
					for k, failed := range zkmap.NewSet[string](r.last.s, site).All(ctx) {
						if failed != nil {
							return nil, failed
						}
						keys = append(keys, k)
					}
					return keys, nil
				}))
			})
		}},
		{name: "zkwatch.Keep", least: 4, run: func(r *round) {
			kept := zkwatch.Keep(r.a.s, site+"/kept", []byte("0"))
			r.party(0, func() {
				if !r.sets(kept, "1") || !r.sets(kept, "2") {
					return
				}
				r.sees(func(ctx context.Context) (string, error) {
					for n, err := range zkwatch.Data(ctx, r.b.s, site+"/kept") {
						return string(n.Data), err
					}
					return "", ctx.Err()
				}, "2")
				_ = r.a.does("Close", func(context.Context) error { return kept.Close() })
			})
		}},
		{name: "zkwatch.Data", least: 4, run: watches("Data", func(ctx context.Context, r *round, saw func(string)) error {
			for n, err := range zkwatch.Data(ctx, r.b.s, site+"/kept") {
				if err != nil {
					return err
				}
				saw(string(n.Data))
			}
			return ctx.Err()
		}, "2")},
		{name: "zkwatch.Children", least: 4, run: watches("Children", func(ctx context.Context, r *round, saw func(string)) error {
			for names, err := range zkwatch.Children(ctx, r.b.s, site) {
				if err != nil {
					return err
				}
				saw(fmt.Sprint(names))
			}
			return ctx.Err()
		}, "[kept]")},
		{name: "zkwatch.Tree", least: 5, run: watches("Tree", func(ctx context.Context, r *round, saw func(string)) error {
			tree := zkwatch.NewTree(r.b.s, site)
			defer tree.Close()
			if err := tree.Start(ctx); err != nil {
				return err
			}
			for _, err := range tree.Changes(ctx) {
				if err != nil {
					return err
				}
				n, _ := tree.Get(site + "/kept")
				saw(string(n.Data))
			}
			return ctx.Err()
		}, "2")},
	}
}

// checks has the end of a round looked at.
func (r *round) checks(f func()) { r.check = f }

// sets changes a kept node, and reports whether it is kept: a refusal ends that.
func (r *round) sets(kept *zkwatch.Kept, data string) bool {
	r.a.until("SetData", func(ctx context.Context) error {
		err := kept.SetData(ctx, []byte(data))
		if r.blow.refuses && kept.Err() != nil {
			return nil
		}
		return err
	})
	return kept.Err() == nil
}

// comes waits until something is so.
func (r *round) comes(what string, is func() bool) {
	for began := time.Now(); !is() && !r.over(); time.Sleep(50 * ms) {
		if time.Since(began) > patient {
			r.wrong("not: %s", what)
			return
		}
	}
}

// sees asks until the answer is as it should be.
func (r *round) sees(ask func(ctx context.Context) (string, error), want string) {
	for began := time.Now(); ; time.Sleep(50 * ms) {
		got := ""
		err := r.b.does("look", func(ctx context.Context) (err error) { got, err = ask(ctx); return err })
		if err == nil && got == want || r.over() {
			return
		}
		if time.Since(began) > patient {
			r.wrong("%q and not %q", got, want)
			return
		}
	}
}

// watches has one client watch what the other one keeps and changes. A watch that a blow has ended begins again.
func watches(what string, watch func(ctx context.Context, r *round, saw func(string)) error, want string) func(r *round) {
	return func(r *round) {
		kept := zkwatch.Keep(r.a.s, site+"/kept", []byte("0"))
		var mu sync.Mutex
		last := ""
		saw := func(s string) { mu.Lock(); defer mu.Unlock(); last = s }
		ctx, cancel := context.WithCancel(context.Background())
		r.party(0, func() {
			for ctx.Err() == nil && !r.over() {
				_ = r.b.does(what, func(limited context.Context) error {
					limited, stop := context.WithCancel(limited)
					defer context.AfterFunc(ctx, stop)()
					return watch(limited, r, saw)
				}, context.Canceled)
			}
		})
		r.party(10*ms, func() {
			defer cancel()
			if !r.sets(kept, "1") {
				return
			}
			time.Sleep(10 * ms)
			if !r.sets(kept, "2") {
				return
			}
			r.comes("it is seen", func() bool { mu.Lock(); defer mu.Unlock(); return last == want })
			_ = r.a.does("Close", func(context.Context) error { return kept.Close() })
		})
	}
}
