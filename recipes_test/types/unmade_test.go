package types_test

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// unmade are zero values of the types that have a constructor, and what the panic of their methods says.
var unmade = []struct {
	value any
	says  string
}{
	{new(zksync.Mutex), "a Mutex without a session: make it with NewMutex"},
	{new(zksync.Multi), "a Multi without a session: make it with MultiLock"},
	{new(zksync.Session), "a Session without servers: open it with Connect"},
	{new(zkshard.Shards), "a Shards without a session: make it with Connect"},
	{new(reentrant.Mutex), "a Mutex without a session: make it with NewMutex"},
	{new(reentrant.RWMutex), "an RWMutex without a session: make it with NewRWMutex"},
	{new(zkatomic.Int64), "an Int64 without a session: make it with NewInt64"},
	{new(zkatomic.Sequence), "a Sequence without a session: make it with NewSequence"},
	{new(zkatomic.Slots), "a Slots without a session: make it with NewSlots"},
	{new(zkatomic.Value[int]), "a Value without a session: make it with NewValue"},
	{new(zkbarrier.Barrier), "a Barrier without a session: make it with NewBarrier"},
	{new(zkbarrier.DoubleBarrier), "a DoubleBarrier without a session: make it with NewDoubleBarrier"},
	{new(zkcond.Cond), "a Cond without a session: make it with New"},
	{new(zkcron.Cron), "a Cron without a session: make it with New"},
	{new(zkdurable.Mutex), "a Mutex without a session: make it with NewMutex"},
	{new(zkelection.Election), "an Election without a session: make it with New"},
	{new(zkflight.Flight[int]), "a Flight without a session: make it with New"},
	{new(zkgroup.Group), "a Group without a session: make it with New"},
	{new(zklatch.Latch), "a Latch without a session: make it with New"},
	{new(zklatch.Gate), "a Gate without a session: make it with NewGate"},
	{new(zkmap.Map[string, int]), "a Map without a session: make it with New"},
	{new(zkmap.Set[string]), "a Set without a session: make it with NewSet"},
	{new(zkonce.Once), "a Once without a session: make it with New"},
	{new(zkonce.Promise[int]), "a Promise without a session: make it with NewPromise"},
	{new(zkphaser.Phaser), "a Phaser without a session: make it with New"},
	{new(zkqueue.Queue[int]), "a Queue without a session: make it with New"},
	{new(zkrate.Limiter), "a Limiter without a session: make it with New"},
	{new(zkrwmutex.RWMutex), "an RWMutex without a session: make it with New"},
	{new(zksemaphore.Weighted), "a Weighted without a session: make it with NewWeighted"},
	{new(zkwaitgroup.WaitGroup), "a WaitGroup without a session: make it with New"},
	{new(zkwatch.Kept), "a Kept without a session: make it with Keep"},
	{new(zkwatch.Tree), "a Tree without a session: make it with NewTree"},
}

// ofAllLevels are the methods that both reentrant locks have from the part that counts levels.
var ofAllLevels = []string{"HoldCount", "HoldCountContext", "HeldByCurrent", "HeldByOwner", "Lease"}

func TestEveryMethodOfAZeroOrNilValuePanicsWithTheNameOfTheConstructor(t *testing.T) {
	for _, u := range unmade {
		for _, v := range []reflect.Value{reflect.ValueOf(u.value), reflect.Zero(reflect.TypeOf(u.value))} {
			for i := range v.NumMethod() {
				name, says := v.Type().Method(i).Name, u.says
				if slices.Contains(ofAllLevels, name) && strings.HasPrefix(v.Type().String(), "*reentrant") {
					if v.IsNil() {
						continue // the method is one of a part, which cannot be reached
					}
					says = "a lock without a session: make it with NewMutex or NewRWMutex"
				}
				err, _ := panicOf(t, v.Method(i)).(error)
				if assert.Error(t, err, "%v.%s", v.Type(), name) {
					assert.ErrorIs(t, err, zksync.ErrMisuse, "%v.%s", v.Type(), name)
					assert.Equal(t, packageOf(v.Type())+": "+says+": misuse", err.Error(), "%v.%s, nil %v", v.Type(), name, v.IsNil())
				}
			}
		}
	}
}

// packageOf is the package of a pointer type.
func packageOf(t reflect.Type) string {
	return path.Base(t.Elem().PkgPath())
}

// A Session that Connect has not opened is misuse like a nil one, and no crash: in a constructor, and in a function.
func TestASessionThatWasNotOpenedIsMisuse(t *testing.T) {
	s := new(zksync.Session)
	entry := zksync.Contender{Node: "/l/_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f-lock-0000000000"}
	_, err := zksync.Contenders(t.Context(), s, "/l")
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.ErrorIs(t, zksync.Verify(t.Context(), s, "/l", zksync.Token{Zxid: 1}), zksync.ErrMisuse)
	require.ErrorIs(t, zksync.Revoke(t.Context(), s, entry), zksync.ErrMisuse)
	for _, made := range []any{
		zksync.NewMutex(s, "/x"), zksync.MultiLock(zksync.NewMutex(s, "/x")), zkrwmutex.New(s, "/x"), zksemaphore.NewWeighted(s, "/x", 1),
		reentrant.NewMutex(zksync.NewMutex(s, "/x")), reentrant.NewRWMutex(zkrwmutex.New(s, "/x")), zkcond.New(zksync.NewMutex(s, "/x"), "/c"),
		zkatomic.NewInt64(s, "/x"), zkatomic.NewSequence(s, "/x"), zkatomic.NewSlots(s, "/x", 1), zkatomic.NewValue[int](s, "/x"),
		zkbarrier.NewBarrier(s, "/x", 1), zkbarrier.NewDoubleBarrier(s, "/x", 1), zkcron.New(s, "/x"), zkdurable.NewMutex(s, "/x"),
		zkelection.New(s, "/x", zkelection.Candidate{}), zkflight.New[int](s, "/x"), zkgroup.New(s, "/x"), zklatch.New(s, "/x", 1),
		zklatch.NewGate(s, "/x"), zkmap.New[string, int](s, "/x"), zkmap.NewSet[string](s, "/x"), zkonce.New(s, "/x"),
		zkonce.NewPromise[int](s, "/x"), zkphaser.New(s, "/x"), zkqueue.New[int](s, "/x"), zkrate.New(s, "/x", 1, 1), zkwaitgroup.New(s, "/x"),
	} {
		v := reflect.ValueOf(made)
		for i := range v.NumMethod() {
			crash, _ := panicOf(t, v.Method(i)).(runtime.Error)
			assert.NoError(t, crash, "%T.%s", made, v.Type().Method(i).Name)
		}
	}
}

// A mutex that is not held has a nil Lease.
func TestEveryMethodOfANilLeasePanicsWithTheReason(t *testing.T) {
	v := reflect.ValueOf((*zksync.Lease)(nil))
	for i := range v.NumMethod() {
		err, _ := panicOf(t, v.Method(i)).(error)
		assert.ErrorIs(t, err, zksync.ErrMisuse, v.Type().Method(i).Name)
		assert.EqualError(t, err, "zksync: a nil Lease: nothing is held: misuse")
	}
}

// panicOf calls a method with arguments that are in order, and ranges over what it returns if that is a sequence.
func panicOf(t *testing.T, method reflect.Value) (x any) {
	t.Helper()
	defer func() { x = recover() }()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		in := method.Type().In(i)
		switch {
		case method.Type().IsVariadic() && i == method.Type().NumIn()-1:
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(t.Context()))
		case in.Kind() == reflect.Func:
			args = append(args, reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for o := range in.NumOut() {
					out = append(out, reflect.Zero(in.Out(o)))
				}
				return out
			}))
		case in == reflect.TypeFor[*zksync.Lease]():
			args = append(args, reflect.ValueOf(new(zksync.Lease)))
		case in.Kind() == reflect.String:
			args = append(args, reflect.ValueOf("x").Convert(in))
		case in.Kind() == reflect.Int, in.Kind() == reflect.Int64:
			args = append(args, reflect.ValueOf(1).Convert(in))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	for _, out := range method.Call(args) {
		switch {
		case out.Type().CanSeq2():
			for range out.Seq2() {
				break
			}
		case out.Type().CanSeq() && out.Kind() == reflect.Func:
			for range out.Seq() {
				break
			}
		}
	}
	return nil
}

// constructor is a function that makes a value of an exported type.
var constructor = regexp.MustCompile(`(?m)^func (?:New\w*|MultiLock|Keep|Connect)(?:\[[^(]*\])?\(.*\) \(?\*([A-Z]\w*)`)

func TestTheZeroValuesAreThoseOfAllTypesWithAConstructor(t *testing.T) {
	listed, made := map[string]bool{}, map[string]bool{}
	for _, u := range unmade {
		name, _, _ := strings.Cut(reflect.TypeOf(u.value).String(), "[")
		listed[strings.TrimPrefix(name, "*")] = true
	}
	files, err := filepath.Glob("../../*/*.go")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range constructor.FindAllStringSubmatch(string(text), -1) {
			if pkg := filepath.Base(filepath.Dir(f)); (pkg == "reentrant" || strings.HasPrefix(pkg, "zk")) && pkg != "zktest" && !strings.HasSuffix(f, "_test.go") {
				made[pkg+"."+m[1]] = true
			}
		}
	}
	require.Equal(t, made, listed)
}
