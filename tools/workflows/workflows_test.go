package workflows

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rhysd/actionlint"
)

const root = "../.."

var (
	script = regexp.MustCompile(`\.ci/[a-z.-]+`)
	target = regexp.MustCompile(`\.ci/make ([a-z-]+)`)
	pinned = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
)

func TestWorkflowsAreValidAndRunWhatIsThere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	scripts := make(map[string]bool)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lint(t, file, source)
		w, errs := actionlint.Parse(source)
		if w == nil || len(errs) > 0 {
			t.Fatal(file, errs)
		}
		for _, run := range commandsOf(t, file, w) {
			for _, name := range script.FindAllString(run, -1) {
				scripts[name] = true
			}
			for _, m := range target.FindAllStringSubmatch(run, -1) {
				if out, err := exec.Command("make", "-C", root, "--dry-run", m[1]).CombinedOutput(); err != nil {
					t.Errorf("%s: make %s: %s", file, m[1], out)
				}
			}
		}
	}
	jobs, err := os.ReadFile(filepath.Join(root, ".ci", "jobs.mk"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range scripts {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not there, or not executable: %v", name, err)
		}
	}
	// A change must pass the same jobs on the forge and in .ci/run.
	for _, line := range strings.Split(string(jobs), "\n") {
		if all, ok := strings.CutPrefix(line, "all: "); ok {
			for job := range strings.FieldsSeq(all + " lint") {
				if !scripts[".ci/"+job] {
					t.Errorf("no workflow runs .ci/%s, which .ci/run does", job)
				}
			}
		}
	}
}

func lint(t *testing.T, file string, source []byte) {
	t.Helper()
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	project, err := actionlint.NewProject(root)
	if err != nil {
		t.Fatal(err)
	}
	errs, err := l.Lint(file, source, project)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range errs {
		t.Error(e)
	}
}

// commandsOf are the commands of a workflow, with each value of its matrix in its place. The actions must be named by commits.
func commandsOf(t *testing.T, file string, w *actionlint.Workflow) (all []string) {
	for name, job := range w.Jobs {
		for _, step := range job.Steps {
			switch e := step.Exec.(type) {
			case *actionlint.ExecRun:
				all = append(all, filled(e.Run.Value, job)...)
			case *actionlint.ExecAction:
				if !pinned.MatchString(e.Uses.Value) {
					t.Errorf("%s: job %s uses %s, which is not pinned to a commit", file, name, e.Uses.Value)
				}
			}
		}
	}
	return all
}

func filled(command string, job *actionlint.Job) []string {
	all := []string{command}
	if job.Strategy == nil || job.Strategy.Matrix == nil {
		return all
	}
	add := func(name string, value actionlint.RawYAMLValue) {
		if c := strings.ReplaceAll(command, "${{ matrix."+name+" }}", strings.Trim(value.String(), `"`)); c != command {
			all = append(all, c)
		}
	}
	for name, row := range job.Strategy.Matrix.Rows {
		for _, v := range row.Values {
			add(name, v)
		}
	}
	if more := job.Strategy.Matrix.Include; more != nil {
		for _, one := range more.Combinations {
			for name, v := range one.Assigns {
				add(name, v.Value)
			}
		}
	}
	return all
}
