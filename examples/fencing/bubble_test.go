package fencing

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// bucket is an object of S3 with its conditional requests: If-Match, If-None-Match, and an ETag that is the MD5 of the body.
type bucket struct {
	mu     sync.Mutex
	object []byte // nil if there is none
	busy   int    // so many PUTs meet another one at the same moment
	lost   int    // of so many PUTs the answer is lost
	puts   []int  // the answers to all PUTs
}

func (b *bucket) tag() string { return fmt.Sprintf(`"%x"`, md5.Sum(b.object)) }

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sent, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	match := r.Header.Get("If-Match")
	code := http.StatusOK
	switch {
	case b.object == nil && (r.Method == http.MethodGet || match != ""):
		code = http.StatusNotFound
	case b.object != nil && r.Header.Get("If-None-Match") == "*", match != "" && match != b.tag():
		code = http.StatusPreconditionFailed
	case r.Method == http.MethodPut && b.busy > 0:
		b.busy--
		code = http.StatusConflict
	case r.Method == http.MethodPut:
		b.object = sent
	}
	if r.Method == http.MethodPut {
		b.puts = append(b.puts, code)
	}
	if b.object != nil {
		w.Header().Set("ETag", b.tag())
	}
	w.WriteHeader(code)
	if r.Method == http.MethodGet {
		_, _ = w.Write(b.object)
	}
}

// RoundTrip makes the bucket the network of a client.
func (b *bucket) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	b.ServeHTTP(w, r)
	if r.Method == http.MethodPut && b.lost > 0 {
		b.lost--
		return nil, errors.New("connection reset")
	}
	return w.Result(), nil
}

// through calls before for each request.
type through struct {
	next   http.RoundTripper
	before func(r *http.Request)
}

func (t through) RoundTrip(r *http.Request) (*http.Response, error) {
	t.before(r)
	return t.next.RoundTrip(r)
}

// errFenced is Kafka's PRODUCER_FENCED.
var errFenced = errors.New("PRODUCER_FENCED")

// broker is a topic of Kafka and its coordinator for one transactional.id, with the rule of the epoch.
type broker struct {
	mu        sync.Mutex
	epoch     int
	committed []string
	open      []string // of the transaction under way, of the producer with the present epoch
}

// producer is a producer of the broker. A call of pause stands before each step.
type producer struct {
	*broker
	epoch int
	pause func(step string)
}

// step does f if the epoch is still that of the producer.
func (p *producer) step(name string, f func()) error {
	p.pause(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epoch != p.broker.epoch {
		return errFenced
	}
	f()
	return nil
}

func (p *producer) Init(context.Context) error {
	p.pause("init")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broker.epoch++
	p.epoch, p.open = p.broker.epoch, nil
	return nil
}

func (p *producer) Last(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committed[len(p.committed)-1], nil
}

func (p *producer) Publish(_ context.Context, record string) error {
	if err := p.step("send", func() { p.open = append(p.open, record) }); err != nil {
		return err
	}
	return p.step("commit", func() { p.committed, p.open = append(p.committed, p.open...), nil })
}

// timeout is the session timeout in the bubbles: a holder that is cut off stands in the way for that long.
const timeout = 12 * time.Second

// stopping lets the first holder of a store stand still at the moment at which it calls stop, lets a second one be granted and
// do its work, and lets the first go on. It returns the errors of both.
func stopping(t *testing.T, store func(stop func()) Store, second Store) (first, after error) {
	srv := zktest.Run(t)
	a, b := srv.Session(t, zksync.WithTimeout(timeout)), srv.Session(t, zksync.WithTimeout(timeout))
	stopped, goOn := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(stopped); <-goOn })
	var done sync.WaitGroup
	done.Go(func() {
		l, err := zksync.NewMutex(a, "/lock").LockContext(t.Context())
		if err == nil {
			first = work(t, store(stop), l, stop) // if it has not stopped before, it does so between the claim and the write
		}
	})
	<-stopped
	began := time.Now()
	heal := srv.Partition(a.ID()) // the whole process stands still
	l, err := zksync.NewMutex(b, "/lock").LockContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, timeout+50*time.Millisecond, time.Since(began), "granted when the session has expired")
	after = work(t, second, l, func() {})
	heal()
	close(goOn)
	done.Wait()
	require.NoError(t, l.Unlock())
	return first, after
}

// work takes two pieces under the lease. Between the claim and the write it calls between.
func work(t *testing.T, store Store, l *zksync.Lease, between func()) error {
	pieces, err := store.Claim(t.Context(), l)
	if err != nil {
		return err
	}
	between()
	return store.Write(t.Context(), l, pieces-2)
}

func TestS3RefusesTheWriteOfAStoppedHolder(t *testing.T) {
	for name, at := range map[string]int{"between the claim and the write": 0, "between the GET and the PUT of the write": 2, "between the GET and the PUT of the claim": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bucket{object: []byte(`{"Token":"0000000000000001-00000000","Pieces":10}`)}
				object := func(before func(*http.Request)) Object {
					return Object{&http.Client{Transport: through{b, before}}, "http://bucket.example/tea"}
				}
				puts := 0
				first, after := stopping(t, func(stop func()) Store {
					return object(func(r *http.Request) {
						if r.Method == http.MethodPut {
							if puts++; puts == at {
								stop()
							}
						}
					})
				}, object(func(*http.Request) {}))
				require.NoError(t, after)
				require.ErrorIs(t, first, zksync.ErrStale)
				require.Contains(t, string(b.object), `"Pieces":8}`)
			})
		})
	}
}

// Had the token only the object's metadata, the ETag of the same pieces would be the same for all holders.
func TestTheETagChangesWithEachHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{}
		o := Object{&http.Client{Transport: b}, "http://bucket.example/tea"}
		s := zktest.Run(t).Session(t)
		tags := make(map[string]bool)
		for range 3 {
			require.NoError(t, zksync.NewMutex(s, "/lock").Do(t.Context(), func(ctx context.Context, l *zksync.Lease) error {
				_, err := o.Claim(ctx, l)
				tags[b.tag()] = true
				return err
			}))
		}
		require.Len(t, tags, 3)
	})
}

// Another holder's write between the GET and the PUT is no reason to stop, if that holder was an earlier one.
func TestAnObjectIsReadAgainAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{object: []byte(`{"Token":"0000000000000001-00000000","Pieces":10}`)}
		late := sync.OnceFunc(func() { b.object = []byte(`{"Token":"0000000000000001-00000000","Pieces":9}`) })
		o := Object{&http.Client{Transport: through{b, func(r *http.Request) {
			if r.Method == http.MethodPut {
				late()
			}
		}}}, "http://bucket.example/tea"}
		s := zktest.Run(t).Session(t)
		require.NoError(t, zksync.NewMutex(s, "/lock").Do(t.Context(), func(ctx context.Context, l *zksync.Lease) error {
			return work(t, o, l, func() {})
		}))
		require.Equal(t, []int{http.StatusPreconditionFailed, http.StatusOK, http.StatusOK}, b.puts)
		require.Contains(t, string(b.object), `"Pieces":7}`, "two of the nine that the earlier holder has left")
	})
}

// After a 409, and after a PUT without an answer, the object says whether the write was done.
func TestAWriteWithoutAnAnswerIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bucket{object: []byte(`{"Token":"0000000000000001-00000000","Pieces":10}`), busy: 1}
		o := Object{&http.Client{Transport: b}, "http://bucket.example/tea"}
		s := zktest.Run(t).Session(t)
		require.NoError(t, zksync.NewMutex(s, "/lock").Do(t.Context(), func(ctx context.Context, l *zksync.Lease) error {
			pieces, err := o.Claim(ctx, l)
			require.NoError(t, err)
			b.lost = 1
			require.ErrorContains(t, o.Write(ctx, l, pieces-2), "connection reset")
			return o.Write(ctx, l, pieces-2)
		}))
		require.Equal(t, []int{http.StatusConflict, http.StatusOK, http.StatusOK, http.StatusOK}, b.puts)
		require.Contains(t, string(b.object), `"Pieces":8}`)
	})
}

func TestKafkaRefusesTheWriteOfAStoppedHolder(t *testing.T) {
	for name, want := range map[string]error{
		"init":   zksync.ErrLost, // it gets the newest epoch, but the servers of the lock refuse it
		"claim":  errFenced,      // between the claim and the write
		"send":   errFenced,
		"commit": errFenced,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &broker{committed: []string{"10"}}
				first, after := stopping(t, func(stop func()) Store {
					return Topic{&producer{broker: b, pause: func(step string) {
						if step == name {
							stop()
						}
					}}}
				}, Topic{&producer{broker: b, pause: func(string) {}}})
				require.NoError(t, after)
				require.ErrorIs(t, first, want)
				require.Equal(t, []string{"10", "8"}, b.committed)
			})
		})
	}
}

// A late holder that has called Init and stopped there has fenced the present one, which claims again and goes on.
func TestALateInitDoesNotStopTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broker{committed: []string{"10"}}
		topic := Topic{&producer{broker: b, pause: func(string) {}}}
		s := zktest.Run(t).Session(t)
		l, err := zksync.NewMutex(s, "/lock").LockContext(t.Context())
		require.NoError(t, err)
		late := &producer{broker: b, pause: func(string) {}}
		err = work(t, topic, l, func() { require.NoError(t, late.Init(t.Context())) })
		require.ErrorIs(t, err, errFenced)
		require.NoError(t, work(t, topic, l, func() {}))
		require.Equal(t, []string{"10", "8"}, b.committed)
		require.ErrorIs(t, late.Publish(t.Context(), "6"), errFenced)
		require.NoError(t, l.Unlock())
	})
}
