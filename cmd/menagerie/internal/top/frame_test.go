package top

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/stretchr/testify/require"
)

func TestBeforeTheFirstView(t *testing.T) {
	shows(t, `
menagerie top /
reading / ...



q quit  ? help  s sort  r reverse  / filter  p pause
`, nil, State{}, 60, 6)
	shows(t, `
menagerie top /
reading / ... the servers have not answered yet



cannot connect to zk1:2181: connection refused; still trying
`, &survey.View{Root: "/", Outage: "the servers have not answered yet"}, State{Note: "cannot connect to zk1:2181: connection refused; still trying"}, 100, 6)
}

func TestQuiet(t *testing.T) {
	shows(t, `
menagerie top /, by waiters                                                 live
all is well: 3 of 3 servers, leader zk2, 0 locks held, 0 wait
nobody holds or waits at / or below it






q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, scene(), State{}, 80, 10)
	shows(t, `
menagerie top /, by waiters                                                 live
all is well: 3 of 3 servers, leader zk2, 1 lock held, 0 wait
   PATH      KIND  HOLDER             HELD  USUAL     X  WAIT  LONGEST  GRANTS/S
>  /locks/b  lock  backup.sh@db1:19   3.0s      -     -     0        -         -
   /locks/a  lock  -                     -      -     -     0        -         -
/locks/b: lock, held by db1 pid 19 for 3s
POS  STATE    FOR  WHO               SINCE      TOKEN
  0  held    3.0s  backup.sh@db1:19  01:31:51Z  000000000000000a-00000000



q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, scene(lock("/locks/a"), lock("/locks/b", holds("db1", 19, 3*time.Second))), State{}, 80, 12)
}

func TestBusy(t *testing.T) {
	shows(t, `
menagerie top /, by waiters                                                                                                   live
all is well: 3 of 3 servers, leader zk2, 2 locks held, 2 wait

   PATH            KIND  HOLDER                 HELD      USUAL     X  WAIT  LONGEST  GRANTS/S
>  /locks/nightly  lock  backup.sh@db1:19        45s  1.2s/3.0s    38     2     9.0s       0.4
   /locks/report   lock  backup.sh@web-3:4711   2.5s  1.0s/2.0s   2.5     0        -        12
   /locks/a        lock  -                         -          -     -     0        -         -

/locks/nightly: lock, held by db1 pid 19 for 45s
POS  STATE      FOR  WHO               BEHIND            SINCE      TOKEN                      SESSION
  0  held       45s  backup.sh@db1:19  -                 01:31:09Z  000000000000000a-00000000  0x13
  1  waiting   9.0s  backup.sh@db2:44  backup.sh@db1:19  01:31:45Z  000000000000000a-00000000  0x2c
  2  waiting   2.0s  backup.sh@db3:7   backup.sh@db2:44  01:31:52Z  000000000000000a-00000000  0x7










q quit  ? help  s sort  r reverse  / filter  p pause  enter below  backspace above
`, busy(), State{}, 130, 24)
}

func TestDeadlock(t *testing.T) {
	a, b := lock("/a", holds("x", 1, time.Minute), waits("y", 2, time.Minute)), lock("/b", holds("y", 2, time.Minute), waits("x", 1, time.Minute))
	a.Entries[1].Stuck, b.Entries[1].Stuck = true, true
	v := scene(a, b, lock("/c"))
	v.Cycles = []survey.Cycle{{Text: "x pid 1 holds /a and waits for /b, which y pid 2 holds; y pid 2 waits for /a", Steps: []survey.Step{{Path: "/a"}, {Path: "/b"}}}}
	shows(t, `
menagerie top /, by path                                                              live
1 deadlock: /a, /b
3 of 3 servers, leader zk2, 2 locks held, 2 wait
   PATH  KIND  HOLDER          HELD  USUAL     X  WAIT  LONGEST  GRANTS/S  NOTE
>  /a    lock  backup.sh@x:1   1m0s      -     -     1     1m0s         -  deadlock
   /b    lock  backup.sh@y:2   1m0s      -     -     1     1m0s         -  deadlock
   /c    lock  -                  -      -     -     0        -         -
/a: lock, held by x pid 1 for 1m0s
POS  STATE      FOR  WHO            BEHIND         SINCE      TOKEN
  0  held      1m0s  backup.sh@x:1  -              01:30:54Z  000000000000000a-00000000
  1  waiting   1m0s  backup.sh@y:2  backup.sh@x:1  01:30:54Z  000000000000000a-00000000
deadlocks
probably, as a session counts as one owner: x pid 1 holds /a and waits for /b, which y pid
2 holds; y pid 2 waits for /a



q quit  ? help  s sort  r reverse  / filter  p pause  enter below  backspace above
`, v, State{Order: ByPath}, 90, 18)
}

func dead() *survey.View {
	v := scene(lock("/locks/a", holds("db1", 19, time.Minute), waits("db2", 44, time.Minute)), lock("/it's", holds("db1", 19, time.Minute), holds("db4", 1, time.Second)))
	for _, o := range v.Objects {
		o.Entries[0].Dead, o.Entries[0].Heard = true, "last heard 6 s ago: free in at most 4 s"
	}
	return v
}

func TestDeadHolder(t *testing.T) {
	shows(t, `
menagerie top /, by waiters                                                                     live
2 holders are probably dead: /locks/a, /it's
3 of 3 servers, leader zk2, 2 locks held, 1 waits

   PATH      KIND  HOLDER                HELD  USUAL     X  WAIT  LONGEST  GRANTS/S  NOTE
>  /locks/a  lock  backup.sh@db1:19      1m0s      -     -     1     1m0s         -  dead?
   /it's     lock  backup.sh@db1:19 +1   1m0s      -     -     0        -         -  dead?

/locks/a: lock, held by db1 pid 19 for 1m0s
POS  STATE      FOR  WHO               BEHIND            SINCE      TOKEN
  0  held      1m0s  backup.sh@db1:19  -                 01:30:54Z  000000000000000a-00000000
     last heard 6 s ago: free in at most 4 s
  1  waiting   1m0s  backup.sh@db2:44  backup.sh@db1:19  01:30:54Z  000000000000000a-00000000

probably dead
db1 pid 19 holds /locks/a: last heard 6 s ago: free in at most 4 s
  menagerie release /locks/a --holder --servers zk1
db1 pid 19 holds /it's: last heard 6 s ago: free in at most 4 s
  menagerie release '/it'\''s' --node n_0000000000 --servers zk1




q quit  ? help  s sort  r reverse  / filter  p pause  enter below  backspace above
`, dead(), State{Flags: []string{"--servers", "zk1"}}, 100, 24)
}

func TestOutage(t *testing.T) {
	v := dead()
	v.At, v.Outage = now.Add(-12*time.Second), "the servers do not answer"
	shows(t, `
menagerie top /, by waiters                                as of 12 s ago; the servers do not answer
2 holders are probably dead: /locks/a, /it's
3 of 3 servers, leader zk2, 2 locks held, 1 waits

   PATH      KIND  HOLDER                HELD  USUAL     X  WAIT  LONGEST  GRANTS/S  NOTE
>  /locks/a  lock  backup.sh@db1:19      1m0s      -     -     1     1m0s         -  dead?
   /it's     lock  backup.sh@db1:19 +1   1m0s      -     -     0        -         -  dead?

/locks/a: lock, held by db1 pid 19 for 1m0s
POS  STATE      FOR  WHO               BEHIND            SINCE      TOKEN
  0  held      1m0s  backup.sh@db1:19  -                 01:30:54Z  000000000000000a-00000000
     last heard 6 s ago: free in at most 4 s
  1  waiting   1m0s  backup.sh@db2:44  backup.sh@db1:19  01:30:54Z  000000000000000a-00000000

probably dead
db1 pid 19 holds /locks/a: last heard 6 s ago: free in at most 4 s
db1 pid 19 holds /it's: last heard 6 s ago: free in at most 4 s

not seen
the servers do not answer: decide nothing by this frame



connection lost: zk1:2181: the server closed it
`, v, State{Note: "connection lost: zk1:2181: the server closed it"}, 100, 24)
}

func TestPaused(t *testing.T) {
	v := dead()
	v.At = now.Add(-12 * time.Second)
	shows(t, `
menagerie top /, by waiters                                                   paused, as of 12 s ago
2 holders are probably dead: /locks/a, /it's
3 of 3 servers, leader zk2, 2 locks held, 1 waits
   PATH      KIND  HOLDER                HELD  USUAL     X  WAIT  LONGEST  GRANTS/S  NOTE
>  /locks/a  lock  backup.sh@db1:19      1m0s      -     -     1     1m0s         -  dead?
   /it's     lock  backup.sh@db1:19 +1   1m0s      -     -     0        -         -  dead?

q quit  ? help  s sort  r reverse  / filter  p pause  enter below  backspace above
`, v, State{Paused: true}, 100, 8)
}

func TestWhatIsNotSeen(t *testing.T) {
	v := busy()
	v.Denied, v.Left, v.Servers.Tells = []string{"/secret", "/sec\x1bret2"}, 7, false
	shows(t, `
menagerie top /, by waiters                                                 live
all is well as far as it was read: 3 of 3 servers, leader zk2, 2 locks held, 2
wait
   PATH            KIND  HOLDER             HELD      USUAL     X  WAIT  LONGEST
>  /locks/nightly  lock  backup.sh@db1:19    45s  1.2s/3.0s    38     2     9.0s
   /locks/report   lock  back...eb-3:4711   2.5s  1.0s/2.0s   2.5     0        -
   /locks/a        lock  -                     -          -     -     0        -
/locks/nightly: lock, held by db1 pid 19 for 45s
POS  STATE      FOR  WHO               BEHIND            SINCE
  0  held       45s  backup.sh@db1:19  -                 01:31:09Z
  1  waiting   9.0s  backup.sh@db2:44  backup.sh@db1:19  01:31:45Z
  2  waiting   2.0s  backup.sh@db3:7   backup.sh@db2:44  01:31:52Z
not seen
/secret, /sec?ret2 not readable with these credentials: see --auth
... 3 more lines
q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, v, State{}, 80, 16)
	v = scene()
	v.Missing, v.Root, v.Servers = true, "/nothing", nil
	shows(t, `
menagerie top /nothing, by waiters                                  at 01:31:53Z
nothing is known of the servers, 0 locks held, 0 wait

/nothing does not exist

not seen
which holders are dead is not known: nothing is known of the servers
`, v, State{Dir: "/nothing", Still: true}, 80, 0)
	v = scene()
	v.Denied, v.Root = []string{"/secret"}, "/secret"
	shows(t, `
menagerie top /secret, by waiters                                   at 01:31:53Z
all is well as far as it was read: 3 of 3 servers, leader zk2, 0 locks held, 0
wait

nobody holds or waits at /secret or below it, as far as it was read

not seen
/secret not readable with these credentials: see --auth
`, v, State{Dir: "/secret", Still: true}, 80, 0)
}

func TestFindings(t *testing.T) {
	v := busy()
	v.Servers.Servers[0].Serves = false
	v.Servers.Findings = []servers.Finding{
		{Severity: servers.Note, Text: "zk3:2181 does not allow cons", Fix: "allow it in 4lw.commands.whitelist", Server: "zk3:2181"},
		{Severity: servers.Problem, Text: "not reachable: connection refused", Fix: "start it", Server: "zk1:2181"},
	}
	shows(t, `
menagerie top /, by grants reversed                                         live
zk1:2181: not reachable: connection refused; start it
2 of 3 servers, leader zk2, 2 locks held, 2 wait
zk3:2181 does not allow cons; allow it in 4lw.commands.whitelist
   PATH            KIND  HOLDER             HELD      USUAL     X  WAIT  LONGEST
>  /locks/a        lock  -                     -          -     -     0        -
   /locks/nightly  lock  backup.sh@db1:19    45s  1.2s/3.0s    38     2     9.0s
   /locks/report   lock  back...eb-3:4711   2.5s  1.0s/2.0s   2.5     0        -
/locks/a: lock, nobody holds or waits


q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, v, State{Order: ByGrants, Reverse: true}, 80, 12)
}

func TestAllIsWellOnlyIfAllServersServe(t *testing.T) {
	v := scene()
	v.Servers.Servers[0].Serves = false
	shows(t, `
menagerie top /, by waiters                                 live
2 of 3 servers, leader zk2, 0 locks held, 0 wait
nobody holds or waits at / or below it
`, v, State{}, 64, 4)
}

func TestNarrowAndSmall(t *testing.T) {
	shows(t, `
menagerie top /, by waiters                             live
all is well: 3 of 3 servers, leader zk2, 2 locks...  +1 line
   PATH            HOLDER                 HELD     X  WAIT
>  /locks/nightly  backup.sh@db1:19        45s    38     2
   /locks/report   backup.sh@web-3:4711   2.5s   2.5     0
   /locks/a        -                         -     -     0
/locks/nightly: lock, held by db1 pid 19 for 45s
POS  STATE      FOR  WHO               BEHIND
... 3 more lines
q quit  ? help  s sort  r reverse  / filter  p pause
`, busy(), State{}, 60, 10)
	shows(t, `
menagerie top /, by waiters                             live
2 holders are probably dead: /locks/a, /it's         +1 line
   PATH      HOLDER                HELD     X  WAIT  NOTE
>  /locks/a  backup.sh@db1:19      1m0s     -     1  dead?
   /it's     backup.sh@db1:19 +1   1m0s     -     0  dead?
probably dead
db1 pid 19 holds /locks/a: last heard 6 s ago: free in at
most 4 s
... 4 more lines
q quit  ? help  s sort  r reverse  / filter  p pause
`, dead(), State{}, 60, 10)
	shows(t, `
menagerie top /, by w...  live
all is well: 3 of...  +2 lines
   PATH             HELD  WAIT
>  /locks/nightly    45s     2
`, busy(), State{}, 30, 4)
}

func TestATallListScrollsToTheSelectedRow(t *testing.T) {
	var all []*survey.Object
	for i := range 100 {
		all = append(all, lock(fmt.Sprintf("/locks/%03d", i), holds("db1", 100+i, time.Duration(i)*time.Second)))
	}
	shows(t, `
menagerie top /, by path                                          live
all is well: 3 of 3 servers, leader zk2, 100 locks held, 0 wait
   PATH        HOLDER              HELD  USUAL     X  WAIT  LONGEST
   /locks/047  backup.sh@db1:147    47s      -     -     0        -
   /locks/048  backup.sh@db1:148    48s      -     -     0        -
   /locks/049  backup.sh@db1:149    49s      -     -     0        -
>  /locks/050  backup.sh@db1:150    50s      -     -     0        -
   /locks/051  backup.sh@db1:151    51s      -     -     0        -
   /locks/052  backup.sh@db1:152    52s      -     -     0        -
   /locks/053  backup.sh@db1:153    53s      -     -     0        -
/locks/050: lock, held by db1 pid 150 for 50s
POS  STATE    FOR  WHO                SINCE
  0  held     50s  backup.sh@db1:150  01:31:04Z
q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, scene(all...), State{Order: ByPath, Selected: "/locks/050"}, 70, 14)
	shows(t, `
menagerie top /, by path                                          live
all is well: 3 of 3 servers, leader zk2, 100 locks held, 0 wait
   PATH        HOLDER              HELD  USUAL     X  WAIT  LONGEST
   /locks/093  backup.sh@db1:193  1m33s      -     -     0        -
   /locks/094  backup.sh@db1:194  1m34s      -     -     0        -
   /locks/095  backup.sh@db1:195  1m35s      -     -     0        -
   /locks/096  backup.sh@db1:196  1m36s      -     -     0        -
   /locks/097  backup.sh@db1:197  1m37s      -     -     0        -
   /locks/098  backup.sh@db1:198  1m38s      -     -     0        -
>  /locks/099  backup.sh@db1:199  1m39s      -     -     0        -
/locks/099: lock, held by db1 pid 199 for 1m39s
POS  STATE    FOR  WHO                SINCE
  0  held   1m39s  backup.sh@db1:199  01:30:15Z
q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, scene(all...), State{Order: ByPath, Selected: "/locks/099"}, 70, 14)
	shows(t, `
menagerie top /, by path                                          live
all is well: 3 of 3 servers, leader zk2, 100 locks held, 0 wait
   PATH        HOLDER              HELD  USUAL     X  WAIT  LONGEST
>  /locks/000  backup.sh@db1:100    0ms      -     -     0        -
   /locks/001  backup.sh@db1:101   1.0s      -     -     0        -
   /locks/002  backup.sh@db1:102   2.0s      -     -     0        -
   /locks/003  backup.sh@db1:103   3.0s      -     -     0        -
   /locks/004  backup.sh@db1:104   4.0s      -     -     0        -
q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, scene(all...), State{Order: ByPath}, 70, 9)
}

func TestFilter(t *testing.T) {
	shows(t, `
menagerie top /, by waiters, with "NIGHT"                                   live
all is well: 3 of 3 servers, leader zk2, 2 locks held, 2 wait
   PATH            KIND  HOLDER             HELD      USUAL     X  WAIT  LONGEST
>  /locks/nightly  lock  backup.sh@db1:19    45s  1.2s/3.0s    38     2     9.0s
/locks/nightly: lock, held by db1 pid 19 for 45s
POS  STATE      FOR  WHO               BEHIND            SINCE
... 3 more lines
filter by a part of a path or an owner: NIGHT_
`, busy(), State{Filter: "NIGHT", Editing: true}, 80, 8)
	shows(t, `
menagerie top /, by waiters, with "web-"                                    live
all is well: 3 of 3 servers, leader zk2, 2 locks held, 2 wait
   PATH           KIND  HOLDER              HELD      USUAL     X  WAIT  LONGEST
>  /locks/report  lock  back...web-3:4711   2.5s  1.0s/2.0s   2.5     0        -
/locks/report: lock, held by web-3 pid 4711 for 3s
POS  STATE    FOR  WHO                   SINCE      TOKEN
  0  held    2.5s  backup.sh@web-3:4711  01:31:51Z  000000000000000a-00000000
q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, busy(), State{Filter: "web-"}, 80, 8)
	shows(t, `
menagerie top /, by waiters, with "zzz"                                     live
all is well: 3 of 3 servers, leader zk2, 2 locks held, 2 wait
nobody holds or waits at / or below it with "zzz" in its path or owner




q quit  ? help  s sort  r reverse  / filter  p pause  enter below
`, busy(), State{Filter: "zzz"}, 80, 8)
}

func TestTheLeaderHasItsPortIfOnlyThePortsDiffer(t *testing.T) {
	for addr, leader := range map[string]string{"zk2:2181": "leader zk2,", "zk1:2182": "leader zk1:2182,"} {
		v := &survey.View{At: now, Servers: &servers.Report{Servers: []servers.Server{
			{Addr: "zk1:2181", Mode: "follower", Serves: true, Reachable: true}, {Addr: addr, Mode: "leader", Serves: true, Reachable: true},
		}}}
		require.Contains(t, Frame(v, State{Dir: "/"}, 100, 20, now), leader)
	}
}
