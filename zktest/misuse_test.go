package zktest_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func (f *fakeTB) Fatal(args ...any) {
	f.Errorf("%s", fmt.Sprint(args...))
	panic("fatal")
}

func TestAMisuseFailsTheTestAndNamesTheFix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		srv.Load(map[string]string{"/a/b": ""})
		for _, c := range []struct {
			do    func()
			fatal bool
			says  string
		}{
			{do: func() { zktest.CheckNode(tb, srv, "a", nil) }, says: `no node can have the path "a": it does not start with a slash`},
			{do: func() { zktest.CheckNoNode(tb, srv, "a") }, says: `no node can have the path "a"`},
			{do: func() { zktest.CheckNoNode(tb, srv, "/a/b/") }, says: `no node can have the path "/a/b/": it ends with a slash`},
			{do: func() { zktest.CheckNoNode(tb, srv, "/a//b") }, says: `it has an empty or relative part`},
			{do: func() { zktest.CheckNoNode(tb, srv, "/a/..") }, says: `it has an empty or relative part`},
			{do: func() { zktest.CheckNoNode(tb, srv, "") }, says: `no node can have the path ""`},
			{do: func() { zktest.CheckTree(tb, srv, "a", nil) }, says: `no node can have the path "a"`},
			{do: func() { zktest.CheckChildren(tb, srv, "/a", "/a/b") }, says: `"/a/b" is a path; children are named without their parent`},
			{do: func() { zktest.WaitNode(tb, srv, "a") }, fatal: true, says: `no node can have the path "a"`},
			{do: func() { zktest.WaitNoNode(tb, srv, "a") }, fatal: true, says: `no node can have the path "a"`},
			{do: func() { zktest.WaitData(tb, srv, "a", nil) }, fatal: true, says: `no node can have the path "a"`},
			{do: func() { zktest.WaitChildren(tb, srv, "a", -1) }, fatal: true, says: `no node can have the path "a"`},
			{do: func() { zktest.WaitChildren(tb, srv, "/a", -2) }, fatal: true, says: "WaitChildren(/a, -2): a node has 0 children or more; -1 is for one that does not exist"},
			{do: func() { srv.DeleteAll("/a/") }, says: `DeleteAll: no node can have the path "/a/": it ends with a slash`},
			{do: func() { srv.OnCommit(nil) }, says: "OnCommit(nil): nothing to call"},
			{do: func() { srv.OnSessionExpired(nil) }, says: "OnSessionExpired(nil): nothing to call"},
			{do: func() { srv.Intercept(nil).Remove() }, says: "Intercept(nil): make a rule with On"},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "locks/*")).Remove() }, says: `On(create, "locks/*") matches no path: a pattern starts with a slash`},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "/locks/")).Remove() }, says: `"/locks/*" matches the children`},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").Nth(-1)).Remove() }, says: "they count from 1"},
			{do: func() { srv.Intercept(zktest.On(zktest.Ping, "/a").LoseReply()).Remove() }, says: `On(ping, "/a") matches nothing: such a request has no path; the pattern is "**"`},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").Error(0)).Remove() }, says: "an error with code 0, which is success"},
			{do: func() { srv.SetError(0) }, says: "an error with code 0, which is success"},
			{do: func() { srv.SetError(zktest.CodeConnectionLoss) }, says: "an error with code -4 (connectionLoss), with which no server answers: a client finds it when its connection breaks; use LoseRequest, LoseReply or Disconnect"},
			{do: func() { srv.SetError(-7) }, says: "an error with code -7 (operationTimeout), with which no server answers: a client finds it when an answer is late; use Hold or Delay"},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").Error(-4711)) }, says: "an error with code -4711 (code-4711), with which no server answers: use one of the constants Code..., such as CodeNoAuth or CodeMarshalling"},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").LoseReply().Queued()).Remove() }, says: "Queued without Hold or Delay"},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").Delay(-time.Second)).Remove() }, says: "a delay of -1s"},
			{do: func() { srv.Intercept(zktest.On(zktest.Create, "**").DelayReply(-time.Second)).Remove() }, says: "a delay of -1s"},
			{do: func() { srv.SetACL("/a") }, says: "set the ACL of /a: an ACL that is empty or invalid"},
			{do: func() { srv.Create("/ttl", nil, 5, 0) }, says: "create /ttl: nodes with a time to live need WithExtendedTypes"},
			{do: func() { srv.Addr() }, fatal: true, says: "a port inside a synctest bubble, where time stands still"},
			{do: func() { zktest.RunAddr(tb, "127.0.0.1:0") }, fatal: true, says: "a port inside a synctest bubble, where time stands still"},
			{do: func() { srv.Connect(tb, 0) }, fatal: true, says: "Connect with a session timeout of 0s"},
			{do: func() { srv.Stop(); srv.Connect(tb, time.Second) }, fatal: true, says: "no session within 10s: is the server closed, stopped or frozen"},
			{do: func() { srv.Session(tb) }, fatal: true, says: "no session within 1m0s: zksync: "},
			{do: func() { srv.Close(); srv.Restart() }, says: "the server is closed and cannot be restarted; Stop it instead of Close"},
		} {
			tb.errors = nil
			if c.fatal {
				require.Panics(t, c.do, c.says)
			} else {
				c.do()
			}
			require.Len(t, tb.errors, 1, c.says)
			require.Contains(t, tb.errors[0], c.says)
		}
		tb.finish()
	})
}

func TestOptionsThatMakeNoSenseFailTheTest(t *testing.T) {
	t.Parallel()
	for says, opts := range map[string][]zktest.Option{
		"zktest: WithTick(0s): want more":                                              {zktest.WithTick(0)},
		`zktest: WithVersion("3.7"): there are 3.4, 3.5, 3.6, 3.8, 3.9`:                {zktest.WithVersion("3.7")},
		"zktest: WithExtendedTypes on a 3.4, which has no nodes with a time to live":   {zktest.WithVersion("3.4"), zktest.WithExtendedTypes()},
		"zktest: WithUnusedContainers on a 3.5, which keeps":                           {zktest.WithVersion("3.5"), zktest.WithUnusedContainers(time.Second)},
		"zktest: WithTick(-1s): want more":                                             {zktest.WithTick(-time.Second)},
		"zktest: WithUnusedContainers(-1s): want more":                                 {zktest.WithUnusedContainers(-time.Second)},
		"zktest: WithVirtualLimit(0s): want more":                                      {zktest.WithVirtualLimit(0)},
		"zktest: WithCommitLatency(-1s): want more":                                    {zktest.WithCommitLatency(-time.Second)},
		"zktest: session timeouts from 2s to 1s: set WithTimeoutLimits":                {zktest.WithTimeoutLimits(2*time.Second, time.Second)},
		"zktest: session timeouts from 2h0m0s to 1h0m0s: set WithTimeoutLimits, or a ": {zktest.WithTick(time.Hour)},
	} {
		tb := &fakeTB{TB: t}
		require.Panics(t, func() { zktest.Run(tb, opts...) })
		require.Contains(t, tb.errors[0], says)
		require.Panics(t, func() { zktest.RunEnsemble(tb, 3, opts...) })
		require.Contains(t, tb.errors[1], says)
		require.Panics(t, func() { zktest.Start(opts...) })
		require.Panics(t, func() { zktest.StartEnsemble(3, opts...) })
	}
}

func TestConnectingToAClosedServerFailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		srv.Close()
		began := time.Now()
		require.Panics(t, func() { srv.Connect(tb, time.Second) })
		require.Panics(t, func() { srv.Session(tb) })
		require.Zero(t, time.Since(began))
		require.Equal(t, []string{"zktest: the server is closed", "zktest: the server is closed"}, tb.errors)
	})
}

func TestTheAddressOfAClosedServerFailsTheTest(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{TB: t}
	srv := zktest.Run(tb)
	srv.Close()
	require.Panics(t, func() { srv.Addr() }, "fatal")
	require.Equal(t, []string{"zktest: Addr of a server that is closed"}, tb.errors)
}

// An assertion that fails in a hook ends the goroutine that runs it; here a panic does, which can be caught.
func TestAfterAHookThatPanicsTheServerCanBeClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		conn := srv.Connect(t, 10*time.Second)
		fail := func() { panic("the test's own") }
		srv.OnCommit(func(zktest.Txn) { fail() })
		srv.OnSessionExpired(func(int64, time.Time) { fail() })
		require.PanicsWithValue(t, "the test's own", func() { srv.Create("/a", nil, 0, 0) })
		require.PanicsWithValue(t, "the test's own", func() { srv.Expire(conn.SessionID()) })
		require.Contains(t, srv.Tree(), "/a")
		fail = func() {}
		srv.Close()
	})
}

func TestADelayOfZeroIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		conn := srv.Connect(t, 10*time.Second)
		srv.Intercept(zktest.On(zktest.Create, "/a").Delay(0))
		began := time.Now()
		_, err := conn.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		require.Zero(t, time.Since(began))
	})
}

func TestConnectingFromAnotherBubbleFailsAtOnce(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		require.Panics(t, func() { srv.Connect(tb, time.Second) })
		require.Panics(t, func() { srv.Session(tb) })
		require.Contains(t, tb.errors[0], "call Run inside synctest.Test, with the bubble's t")
		require.Contains(t, tb.errors[1], "call Run inside synctest.Test, with the bubble's t")
	})
}

func TestAClosedServerCanStillBeLookedAt(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	srv.Load(map[string]string{"/a": "x"})
	srv.Close()
	srv.Close()
	zktest.CheckNode(t, srv, "/a", []byte("x"))
	require.Len(t, srv.Log(), 1)
	_, err := srv.Dial("", "", 0)
	require.ErrorContains(t, err, "connection refused")
}

func TestAHookThatCallsTheServerFailsTheTestAndNothingHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv := zktest.Run(tb)
		var trees []string
		srv.OnCommit(func(zktest.Txn) { trees = append(trees, srv.Tree()) })
		srv.OnSessionExpired(func(int64, time.Time) { srv.Sessions() })
		srv.Create("/a", nil, 0, 0)
		conn := srv.Connect(t, 10*time.Second)
		srv.Expire(conn.SessionID())
		synctest.Wait()
		require.Len(t, tb.errors, 1, "it says so once")
		require.Contains(t, tb.errors[0], "a hook (OnCommit, OnSessionExpired, OnElected, WithVerbose) called the server")
		require.Greater(t, len(trees), 2)
		zktest.CheckNode(t, srv, "/a", nil)
	})
}

func TestAHookMayRunWhileOthersCallTheServer(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	seen, look := make(chan bool), make(chan bool)
	srv.OnCommit(func(zktest.Txn) {
		look <- true
		<-seen
	})
	go srv.Create("/a", nil, 0, 0)
	<-look
	looked := make(chan string)
	go func() { looked <- srv.Tree() }() // waits for the lock, as it should
	seen <- true
	require.Equal(t, "/\n  /a\n", <-looked)
}

func TestAHookOfAnElectionMustNotCallTheEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		e := zktest.RunEnsemble(tb, 3)
		e.OnElected(func(int, time.Time) { e.Leader() })
		e.ElectLeader(0)
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], "called the server")
		tb.finish()
	})
}

func TestAMemberThatIsNotThereFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		e := zktest.RunEnsemble(tb, 3)
		for what, do := range map[string]func(i int){
			"Server": func(i int) { e.Server(i) }, "Serving": func(i int) { e.Serving(i) }, "ElectLeader": e.ElectLeader,
			"Lag": func(i int) { e.Lag(i) }, "Isolate": func(i int) { e.Isolate(i) }, "Pin": func(i int) { e.Pin(1, i) },
			"ConnectAt": func(i int) { e.ConnectAt(t, i, time.Second) }, "SessionAt": func(i int) { e.SessionAt(t, i) },
		} {
			for _, i := range []int{-1, 3} {
				tb.errors = nil
				require.Panics(t, func() { do(i) }, what)
				require.Equal(t, []string{fmt.Sprintf("zktest: %s: no member %d; there are 0 to 2", what, i)}, tb.errors)
			}
		}
		tb.finish()
	})
}

func TestAPrinterThatCallsTheServerFailsTheTestAndNothingHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		var srv *zktest.Server
		look := func() {}
		srv = zktest.Run(tb, zktest.WithVerbose(func(...any) { look() }))
		look = func() { srv.Tree(); srv.Log() }
		srv.Create("/a", nil, 0, 0)
		conn := srv.Connect(t, 10*time.Second)
		srv.Expire(conn.SessionID())
		synctest.Wait()
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], "OnElected, WithVerbose) called the server")
		look = func() { panic("the test's own") }
		require.Panics(t, func() { srv.Create("/b", nil, 0, 0) })
		look = func() {}
		require.Contains(t, srv.Tree(), "/b")
	})
}

func TestAVerdictThatMakesNoSenseFailsTheTestAndTheRequestRuns(t *testing.T) {
	t.Parallel()
	for says, v := range map[string]zktest.Verdict{
		"zktest: an error with code 0, which is success; an InterceptFunc returned it for create /n":           {Fate: zktest.Fail},
		"zktest: no Fate has the number 5; an InterceptFunc returned it for create /n":                         {Fate: zktest.Fail + 1, Code: zktest.CodeMarshalling},
		"zktest: no Fate has the number -1; an InterceptFunc returned it for create /n":                        {Fate: -1},
		"zktest: a delay of -1s; an InterceptFunc returned it for create /n":                                   {Delay: -time.Second},
		"zktest: a delay of -2s; an InterceptFunc returned it for create /n":                                   {DelayReply: -2 * time.Second},
		"zktest: Queued without Hold or Delay: nothing would wait; an InterceptFunc returned it for create /n": {Queued: true},
	} {
		for _, ensemble := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				tb := &fakeTB{TB: t}
				var srv *zktest.Server
				judge := func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.Create {
						return v
					}
					return zktest.Verdict{}
				}
				if ensemble {
					e := zktest.RunEnsemble(tb, 3)
					e.InterceptFunc(judge)
					srv = e.Server(0)
				} else {
					srv = zktest.Run(tb)
					srv.InterceptFunc(judge)
				}
				conn := srv.Connect(t, 10*time.Second)
				start := time.Now()
				mustCreate(t, conn, "/n", 0)
				require.Zero(t, time.Since(start))
				zktest.CheckNode(t, srv, "/n", nil)
				require.Equal(t, []string{says}, tb.errors)
				_, err := conn.Create("/n", nil, 0, open)
				require.ErrorIs(t, err, zk.ErrNodeExists)
				require.Len(t, tb.errors, 1, "it says so once")
			})
		}
	}
}

func TestAFunctionThatIsMissingIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &fakeTB{TB: t}
		srv, e := zktest.Run(tb), zktest.RunEnsemble(tb, 3)
		for says, do := range map[string]func(){
			"zktest: OnCommit(nil): nothing to call":                  func() { srv.OnCommit(nil) },
			"zktest: OnSessionExpired(nil): nothing to call":          func() { srv.OnSessionExpired(nil) },
			"zktest: InterceptFunc(nil): nothing to call":             func() { srv.InterceptFunc(nil)() },
			"zktest: Ensemble.OnCommit(nil): nothing to call":         func() { e.OnCommit(nil) },
			"zktest: Ensemble.OnSessionExpired(nil): nothing to call": func() { e.OnSessionExpired(nil) },
			"zktest: Ensemble.OnElected(nil): nothing to call":        func() { e.OnElected(nil) },
			"zktest: Ensemble.InterceptFunc(nil): nothing to call":    func() { e.InterceptFunc(nil)() },
			"zktest: Intercept(nil): make a rule with On":             func() { e.Intercept(nil).Remove() },
		} {
			tb.errors = nil
			do()
			require.Equal(t, []string{says}, tb.errors)
		}
		mustCreate(t, srv.Connect(t, 10*time.Second), "/n", 0)
		mustCreate(t, e.Connect(t, 10*time.Second), "/n", 0)
		e.ElectLeader(0)
		e.Expire(e.Connect(t, 10*time.Second).SessionID())
	})
}

func TestAPrinterThatIsMissingIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	tb := &fakeTB{TB: t}
	require.Panics(t, func() { zktest.Run(tb, zktest.WithVerbose(nil)) })
	require.Panics(t, func() { zktest.RunEnsemble(tb, 3, zktest.WithVerbose(nil)) })
	says := "zktest: WithVerbose(nil): nothing to call"
	require.Equal(t, []string{says, says}, tb.errors)
	require.PanicsWithValue(t, says, func() { zktest.Start(zktest.WithVerbose(nil)) })
}
