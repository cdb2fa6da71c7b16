package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	// jarsEnv names a folder of jars to use instead of Debian's: the lib folder of a ZooKeeper release.
	jarsEnv = "MENAGERIE_ZOOKEEPER_LIB"

	// debianJars is where Debian's policy has all Java libraries.
	debianJars = "/usr/share/java"

	jarsPackage = "libzookeeper-java"    // the jars of Debian's zookeeper, without its system user and desktop Java
	javaPackage = "default-jdk-headless" // the sequence patch is compiled when it runs, so no mere runtime
)

// ErrNotInstalled is returned when Java or ZooKeeper is missing on this machine. The error that wraps
// it says what is missing and how to install it.
var ErrNotInstalled = errors.New("not installed")

// installation is what servers are started from.
type installation struct {
	java      string // path of the program
	classPath string
}

// find looks for Java and ZooKeeper.
func find() (installation, error) {
	java, noJava := findJava()
	classPath, noJars := findJars()
	if noJava != nil || noJars != nil {
		return installation{}, notInstalled(noJava, noJars)
	}
	return installation{java: java, classPath: classPath}, nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("no java in PATH or JAVA_HOME")
	}
	return path, nil
}

func findJars() (string, error) {
	if dir := os.Getenv(jarsEnv); dir != "" {
		jars, err := filepath.Glob(filepath.Join(dir, "zookeeper*.jar"))
		if err != nil || len(jars) == 0 {
			return "", fmt.Errorf("no zookeeper jar in %s (from %s)", dir, jarsEnv)
		}
		return filepath.Join(dir, "*"), nil // a release's folder holds exactly what it needs
	}
	jars := []string{filepath.Join(debianJars, "zookeeper.jar")}
	if _, err := os.Stat(jars[0]); err != nil {
		return "", fmt.Errorf("no %s", jars[0])
	}
	// The jar's manifest names most of what it needs, but Debian's netty comes in more parts than
	// that, and which logger to use is the user's choice. A server without a logger says nothing.
	for _, pattern := range []string{"zookeeper-jute.jar", "netty-*.jar", "slf4j-api.jar", "slf4j-simple.jar"} {
		found, err := filepath.Glob(filepath.Join(debianJars, pattern))
		if err != nil {
			return "", err
		}
		jars = append(jars, unversioned(found)...)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}

var version = regexp.MustCompile(`-\d`)

// unversioned leaves out the links name-1.2.3.jar, which double every jar.
func unversioned(jars []string) []string {
	var kept []string
	for _, jar := range jars {
		if !version.MatchString(filepath.Base(jar)) {
			kept = append(kept, jar)
		}
	}
	return kept
}

// checkCompiler returns an error unless the Java installation can compile, which the sequence patch
// needs and the servers do not.
func (in installation) checkCompiler() error {
	modules, err := exec.Command(in.java, "--list-modules").Output()
	if err != nil {
		return fmt.Errorf("ensemble: %s --list-modules: %w", in.java, err)
	}
	if !strings.Contains(string(modules), "jdk.compiler") {
		return notInstalled(fmt.Errorf("%s has no compiler", in.java), nil)
	}
	return nil
}

// notInstalled makes one error of what is missing, with the command for exactly that.
func notInstalled(java, jars error) error {
	var missing, packages []string
	if java != nil {
		missing, packages = append(missing, java.Error()), append(packages, javaPackage)
	}
	if jars != nil {
		missing, packages = append(missing, jars.Error()), append(packages, jarsPackage)
	}
	return &missingError{what: strings.Join(missing, ", "), packages: packages}
}

// missingError says what is missing and which Debian packages bring it.
type missingError struct {
	what     string
	packages []string
}

func (e *missingError) Error() string {
	return fmt.Sprintf("ensemble: %s: %v; as root on Debian or Ubuntu run: apt-get update && apt-get install -y --no-install-recommends %s"+
		" (elsewhere: install a JDK 17 and set %s to the lib folder of a ZooKeeper release)",
		e.what, ErrNotInstalled, strings.Join(e.packages, " "), jarsEnv)
}

// Unwrap makes the error match ErrNotInstalled.
func (e *missingError) Unwrap() error { return ErrNotInstalled }

// command returns the command of a server that works in dir. properties are -D options, which win
// over the ones that every server gets.
func (in installation) command(heapMB int, properties []string, dir, configFile string) *exec.Cmd {
	args := []string{
		fmt.Sprintf("-Xmx%dm", heapMB),
		"-XX:+UseSerialGC", // the others start threads by the core, for heaps of another size
		"-XX:-UsePerfData", // no files outside dir
		"-Djava.awt.headless=true",
		"-Dfile.encoding=UTF-8", // of credentials, whatever the locale: 3.8 reads them in the machine's own
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-cp", in.classPath,
	}
	args = append(args, properties...)
	cmd := exec.Command(in.java, append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", configFile)...)
	cmd.Dir = dir
	return cmd
}
