package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// The module whose folder testdata has the API of Kubernetes as OpenAPI documents. It is downloaded, and not compiled.
const (
	apiModule = "k8s.io/client-go@v0.37.2"
	apiSum    = "h1:sgFtyRZukGkOrsu+QgS7LYnbFFJ5ut3MchdBNduD//E="
)

// schema is what is used of a schema of OpenAPI 3.
type schema struct {
	Ref        string            `json:"$ref"`
	AllOf      []*schema         `json:"allOf"`
	OneOf      []*schema         `json:"oneOf"`
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Items      *schema           `json:"items"`
	Additional *schema           `json:"additionalProperties"`
	Kinds      []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// api has the schemas by their names.
type api map[string]*schema

func loadAPI(t *testing.T) api {
	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", apiModule)
	download.Dir, download.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := download.Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("no %s: %v %s", apiModule, err, out)
	}
	require.NoError(t, err, "%s", out)
	var module struct{ Dir, Sum string }
	require.NoError(t, json.Unmarshal(out, &module))
	require.Equal(t, apiSum, module.Sum)
	all := make(api)
	for _, name := range []string{"api__v1_openapi.json", "apis__apps__v1_openapi.json"} {
		text, err := os.ReadFile(filepath.Join(module.Dir, "openapi", "openapitest", "testdata", name))
		require.NoError(t, err)
		var document struct {
			Components struct{ Schemas api }
		}
		require.NoError(t, json.Unmarshal(text, &document))
		for name, s := range document.Components.Schemas {
			all[name] = s
		}
	}
	return all
}

// of is the schema of an object.
func (a api) of(object map[string]any) *schema {
	for _, s := range a {
		for _, k := range s.Kinds {
			if k.Kind == object["kind"] && strings.TrimPrefix(k.Group+"/"+k.Version, "/") == object["apiVersion"] {
				return s
			}
		}
	}
	return nil
}

// check returns what is wrong with a value at a path.
func (a api) check(path string, v any, s *schema) (wrong []string) {
	for s.Ref != "" || len(s.AllOf) == 1 {
		if len(s.AllOf) == 1 {
			s = s.AllOf[0]
		} else {
			s = a[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		}
	}
	kinds := []string{s.Type}
	for _, one := range s.OneOf {
		kinds = append(kinds, one.Type)
	}
	if !slices.Contains(kinds, kindOf(v)) {
		return []string{fmt.Sprintf("%s: %v is no %s", path, v, strings.TrimPrefix(strings.Join(kinds, " or "), " or "))}
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, there := v[name]; !there {
				wrong = append(wrong, path+": "+name+" is missing")
			}
		}
		for name, field := range v {
			if p, known := s.Properties[name]; known {
				wrong = append(wrong, a.check(path+"."+name, field, &p)...)
			} else if s.Additional != nil {
				wrong = append(wrong, a.check(path+"."+name, field, s.Additional)...)
			} else {
				wrong = append(wrong, path+": there is no field "+name)
			}
		}
	case []any:
		for i, item := range v {
			wrong = append(wrong, a.check(fmt.Sprintf("%s[%d]", path, i), item, s.Items)...)
		}
	}
	return wrong
}

// kindOf is the type of a value in the words of OpenAPI.
func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case int:
		return "integer"
	case float64:
		return "number"
	}
	return "null"
}

// objects are the objects of a manifest.
func objects(t *testing.T, text string) (all []map[string]any) {
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var object map[string]any
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, object)
	}
}

func manifests(t *testing.T) map[string]string {
	names, err := filepath.Glob("../../docs/kubernetes/*.yaml")
	require.NoError(t, err)
	require.Len(t, names, 4)
	all := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		all[filepath.Base(name)] = string(text)
	}
	return all
}

func TestTheManifestsSuitTheAPI(t *testing.T) {
	a := loadAPI(t)
	for name, text := range manifests(t) {
		for _, object := range objects(t, text) {
			s := a.of(object)
			require.NotNil(t, s, "%s: an unknown kind", name)
			require.Empty(t, a.check(name, object, s))
		}
	}
}

func TestTheCheckOfManifestsFindsMistakes(t *testing.T) {
	a := loadAPI(t)
	deployment := manifests(t)["deployment.yaml"]
	for _, m := range []struct{ from, to, wrong string }{
		{"readinessProbe:", "readinesProbe:", "spec.template.spec.containers[0]: there is no field readinesProbe"},
		{"terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 40s", "40s is no integer"},
		{"name: orders\n          image", "image", "spec.template.spec.containers[0]: name is missing"},
		{"port: http", "port: true", "true is no integer or string"},
		{"emptyDir: {}", "emptydir: {}", "spec.template.spec.volumes[0]: there is no field emptydir"},
	} {
		require.Contains(t, deployment, m.from)
		object := objects(t, strings.Replace(deployment, m.from, m.to, 1))[0]
		require.Contains(t, strings.Join(a.check("", object, a.of(object)), "\n"), m.wrong)
	}
	require.Nil(t, a.of(objects(t, strings.Replace(deployment, "apps/v1", "apps/v2", 1))[0]))
}

// workload is what the arithmetic needs of a Deployment or a StatefulSet.
type workload struct {
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Command   []string
					Env       []struct{ Name, Value string }
					Liveness  map[string]any `yaml:"livenessProbe"`
					Readiness struct {
						Get struct{ Path string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
					Lifecycle struct {
						PreStop struct{ Exec struct{ Command []string } } `yaml:"preStop"`
					}
					Resources struct{ Limits map[string]string }
					Mounts    []struct {
						Path string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
			}
		}
	}
}

func seconds(t *testing.T, s string) time.Duration {
	d, err := time.ParseDuration(s)
	require.NoError(t, err)
	return d
}

// workloads are the Deployments and StatefulSets by their files, with the text of each file.
func workloads(t *testing.T, each func(file, text string, w workload)) {
	n := 0
	for file, text := range manifests(t) {
		for d := yaml.NewDecoder(strings.NewReader(text)); ; {
			var w workload
			err := d.Decode(&w)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if len(w.Spec.Template.Spec.Containers) > 0 { // else it is a Service
				n++
				each(file, text, w)
			}
		}
	}
	require.Equal(t, 3, n)
}

// A pod has the time for preStop, for the longest order or the end of the program, and for Close, and some to spare.
func TestTheGracePeriodsAreLongEnough(t *testing.T) {
	toSpare := regexp.MustCompile(`# (.*) to spare\n`)
	number := regexp.MustCompile(`(\d+) s\b`)
	workloads(t, func(file, text string, w workload) {
		need := zkconn.Closing
		for _, c := range w.Spec.Template.Spec.Containers {
			if stop := c.Lifecycle.PreStop.Exec.Command; stop != nil {
				require.Equal(t, "sleep", stop[0])
				need += seconds(t, stop[1]+"s")
			}
			for _, e := range c.Env {
				if e.Name == "ORDER_TIMEOUT" {
					need += seconds(t, e.Value)
				}
			}
			if i := slices.Index(c.Command, "--grace"); i > 0 {
				need += seconds(t, c.Command[i+1])
			}
		}
		grace := time.Duration(w.Spec.Template.Spec.Grace) * time.Second
		require.GreaterOrEqual(t, grace, need+time.Second, file)
		var said time.Duration
		for _, s := range number.FindAllStringSubmatch(toSpare.FindString(text), -1) {
			said += seconds(t, s[1]+"s")
		}
		require.Equal(t, grace, said, "the comment of %s", file)
	})
}

// The manifests set what the service reads, and what docs/kubernetes.md advises.
func TestTheManifestsFollowThePage(t *testing.T) {
	source, err := os.ReadFile("service.go")
	require.NoError(t, err)
	var reads []string
	for _, m := range regexp.MustCompile(`os\.Getenv\("(\w+)"\)`).FindAllStringSubmatch(string(source), -1) {
		reads = append(reads, m[1])
	}
	slices.Sort(reads)
	var usual time.Duration
	synctest.Test(t, func(t *testing.T) { usual = zktest.Run(t).Session(t).Timeout() })
	workloads(t, func(file, _ string, w workload) {
		for _, c := range w.Spec.Template.Spec.Containers {
			require.Empty(t, c.Liveness, file)
			require.NotContains(t, c.Resources.Limits, "cpu", file)
			if c.Command != nil {
				continue // another program
			}
			var sets []string
			for _, e := range c.Env {
				sets = append(sets, e.Name)
				switch e.Name {
				case "SESSION_TIMEOUT":
					require.Equal(t, usual, seconds(t, e.Value), file)
				case "SESSION_FILE":
					require.Equal(t, c.Mounts[0].Path, filepath.Dir(e.Value), file)
				}
			}
			slices.Sort(sets)
			require.Equal(t, reads, sets, file)
			require.Contains(t, string(source), `"`+c.Readiness.Get.Path+`"`, file)
		}
	})
}
