package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a repository with a package p whose benchmarks report what bodies say, one commit each. The
// current directory is its tree.
func repository(t *testing.T, bodies ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"} {
		t.Setenv(name, "test")
	}
	write(t, "go.mod", "module example.org/m\n\ngo 1.26.0\n")
	do(t, "git", "init", "-q")
	for i, body := range bodies {
		write(t, "p/p_test.go", "package p\n\nimport (\n\"fmt\"\n\"testing\"\n)\n\nvar _ = fmt.Sprint\n\n"+body)
		do(t, "git", "add", "-A")
		do(t, "git", "commit", "-q", "-m", fmt.Sprint("commit ", i))
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
}

// bench is a benchmark that reports so many requests.
func bench(name string, requests float64) string {
	return fmt.Sprintf("func Benchmark%s(b *testing.B) { for b.Loop() {}; b.ReportMetric(%g, \"requests/op\"); b.ReportMetric(1, \"ns/op\") }\n", name, requests)
}

// costs is a test that prints, as a benchmark does, that an operation takes so many requests.
func costs(requests float64) string {
	return fmt.Sprintf("func TestCosts(*testing.T) { fmt.Println(\"BenchmarkCosts 72 %g exact-requests/op\") }\n", requests)
}

func compareIn(t *testing.T, base string, packages ...string) (bool, string) {
	t.Helper()
	var out strings.Builder
	worse, err := compare(context.Background(), base, 5, []string{"-test.run=.", "-test.bench=.", "-test.benchtime=1x"}, packages, &out)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := exec.Command("git", "worktree", "list").Output(); err != nil || strings.Count(string(left), "\n") != 1 {
		t.Errorf("worktrees: %s %v", left, err)
	}
	return worse, out.String()
}

func TestMoreRequestsAreFound(t *testing.T) {
	repository(t, bench("A", 2)+bench("B", 3)+bench("Gone", 1)+costs(2), bench("A", 2.1)+bench("B", 3)+bench("New", 9)+costs(2.014))
	write(t, "q/q_test.go", "package q\n")
	worse, out := compareIn(t, "HEAD~1", "./p", "./q")
	if !worse || strings.Count(out, "WORSE") != 2 {
		t.Error(out)
	}
	for _, line := range []string{"./q is not in HEAD~1", "not in the older revision", "not there any more"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in\n%s", line, out)
		}
	}
	if worse, out = compareIn(t, "HEAD", "./p"); worse {
		t.Error("the same is worse:", out)
	}
}

func TestTheNewestTagIsTheBase(t *testing.T) {
	repository(t, bench("A", 2), bench("A", 1))
	if worse, out := compareIn(t, "", "./p"); worse || !strings.HasPrefix(out, "nothing to compare with") {
		t.Error(worse, out)
	}
	do(t, "git", "tag", "v1", "HEAD~1")
	if worse, out := compareIn(t, "", "./p"); worse || !strings.HasPrefix(out, "comparing with v1 ") {
		t.Error(worse, out)
	}
}

func TestABenchmarkThatFailsIsAnError(t *testing.T) {
	repository(t, bench("A", 2), "func BenchmarkA(b *testing.B) { b.Fatal(\"broken\") }\n")
	_, err := compare(context.Background(), "HEAD~1", 1, []string{"-test.bench=."}, []string{"./p"}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Error(err)
	}
}

func TestOnlyWhatIsLargeAndNoChanceIsWorse(t *testing.T) {
	fast, slow := []float64{10, 11, 10, 11, 10, 11}, []float64{12, 13, 12, 13, 12, 13}
	for _, c := range []struct {
		unit         string
		older, newer []float64
		worse        bool
	}{
		{"sec/op", fast, slow, true},
		{"sec/op", slow, fast, false},
		{"sec/op", []float64{100, 101, 100, 101, 100, 101}, []float64{105, 106, 105, 106, 105, 106}, false}, // 5 %
		{"sec/op", []float64{10, 30, 10, 30, 10, 30}, []float64{12, 29, 31, 12, 29, 31}, false},             // chance
		{"requests/op", []float64{100, 100, 100, 100, 100, 100}, []float64{105, 106, 105, 106, 105, 106}, true},
		{"requests/op", []float64{2, 2, 2, 2, 2, 2}, []float64{2, 2, 2, 2, 2, 2}, false},
		{"allocs/op", []float64{180, 180, 180, 181, 190, 180}, []float64{181, 181, 182, 181, 181, 181}, true},  // one more
		{"allocs/op", []float64{180, 180, 180, 180, 180, 180}, []float64{181, 181, 182, 180, 181, 181}, false}, // the runtime's
		{"allocated-bytes/op", []float64{1000, 1000}, []float64{1009, 1009}, false},
		{"allocated-bytes/op", []float64{1000, 1000}, []float64{1011, 1011}, true},
		{"exact-requests/op", []float64{4}, []float64{4.014}, true}, // one more in 72 operations
		{"exact-requests/op", []float64{4}, []float64{3}, false},
		{"exact-received-bytes/op", []float64{638}, []float64{638.014}, true},
		{"exact-sent-bytes/op", []float64{677}, []float64{677.014}, true},
		{"exact-sent-bytes/op", []float64{677}, []float64{677}, false},
		{"B/op", []float64{1}, []float64{9}, false},                                                    // not compared
		{"requests/op", []float64{4, 4.1, 4.2, 4.3, 4.4}, []float64{4.25, 4.45, 4.5, 4.6, 4.7}, false}, // p is 0.03
	} {
		older, newer, out := results{}, results{}, strings.Builder{}
		for r, values := range map[*results][]float64{&older: c.older, &newer: c.newer} {
			for _, v := range values {
				if err := r.read("p", fmt.Appendf(nil, "BenchmarkA 1 %g %s\n", v, c.unit)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if worse := judge(older, newer, &out); worse != c.worse {
			t.Errorf("%v: %v\n%s", c, worse, &out)
		}
	}
}
