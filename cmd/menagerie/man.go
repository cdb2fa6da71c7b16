package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/go-menagerie/menagerie/internal/wording"
)

func (a *app) manCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages of all commands",
		Long: `Writes a manual page of each command into DIR, such as menagerie-lock.1, and says how many. DIR is made if it
does not exist. Pages that are there are replaced. They have what --help has, and are the same for the same
version.

Exit codes:
    0  written
    1  a page cannot be written
    2  wrong command line, or DIR is a file`,
		Example: `  menagerie man man/man1     # then: man -M man menagerie-lock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return usage("DIR is missing: the directory of the pages, such as man/man1")
			case 1:
				return a.writePages(cmd.Root(), args[0])
			}
			return usage("want one DIR, found %q too", shorten(args[1]))
		},
	}
	withoutConnection(cmd, "leave it out")
	return cmd
}

// writePages writes the pages of root and all below it.
func (a *app) writePages(root *cobra.Command, dir string) error {
	if st, err := os.Stat(dir); err == nil && !st.IsDir() {
		return usage("%s is a file, want a directory", shorten(dir))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failure("cannot make the directory of the pages: %v", err)
	}
	b := thisBuild()
	all := pagesOf(root)
	for _, c := range all {
		if err := os.WriteFile(filepath.Join(dir, dashed(c)+".1"), []byte(page(c, b)), 0o644); err != nil {
			return failure("cannot write the page of %s: %v", c.CommandPath(), err)
		}
	}
	_, err := fmt.Fprintf(a.stdout, "wrote %s to %s\n", wording.Plural(int64(len(all)), "page"), dir)
	return outputError(err)
}

// pagesOf are the commands that have a page: c and those below it.
func pagesOf(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, pagesOf(sub)...)
		}
	}
	return all
}

func dashed(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// page is the manual page of c. (cobra/doc would read the help as Markdown, and run the lines of a table of exit codes together.)
func page(c *cobra.Command, b build) string {
	c.InitDefaultHelpFlag()
	var p strings.Builder
	day, _, _ := strings.Cut(b.Time, "T") // of the commit, so the same in each build
	fmt.Fprintf(&p, ".TH \"%s\" 1 \"%s\" \"menagerie %s\" \"Menagerie\"\n", roff(strings.ToUpper(dashed(c))), day, roff(b.String()))
	p.WriteString(".SH NAME\n" + roff(dashed(c)) + " \\- " + roff(c.Short) + "\n.SH SYNOPSIS\n")
	verbatim(&p, strings.ReplaceAll(c.UseLine(), "\n  ", "\n"))
	p.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(cmp.Or(c.Long, c.Short+".")), "\n\n") {
		if strings.HasPrefix(paragraph, "Exit codes") {
			p.WriteString(".SH EXIT STATUS\n")
		} else {
			p.WriteString(".PP\n")
		}
		prose(&p, paragraph)
	}
	options(&p, "OPTIONS", c.NonInheritedFlags())
	if connects(c) || !c.HasParent() {
		options(&p, "OPTIONS OF THE CONNECTION", c.InheritedFlags())
	}
	if c.Example != "" {
		p.WriteString(".SH EXAMPLES\n")
		verbatim(&p, c.Example)
	}
	see := pagesOf(c)[1:]
	if c.HasParent() {
		see = append([]*cobra.Command{c.Parent()}, see...)
	}
	if len(see) > 0 {
		p.WriteString(".SH SEE ALSO\n")
	}
	for i, s := range see {
		fmt.Fprintf(&p, ".BR %s (1)%s\n", roff(dashed(s)), []string{",", ""}[(i+1)/len(see)])
	}
	return p.String()
}

// prose writes a paragraph of help. Its indented lines stay lines of their own.
func prose(p *strings.Builder, text string) {
	var table []string
	flush := func() {
		if len(table) > 0 {
			verbatim(p, strings.Join(table, "\n"))
		}
		table = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			table = append(table, line)
			continue
		}
		flush()
		p.WriteString(roff(line) + "\n")
	}
	flush()
}

// verbatim writes lines that are not filled.
func verbatim(p *strings.Builder, text string) {
	p.WriteString(".nf\n")
	for line := range strings.SplitSeq(text, "\n") {
		p.WriteString(roff(line) + "\n")
	}
	p.WriteString(".fi\n")
}

func options(p *strings.Builder, heading string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		p.WriteString(".SH " + heading + "\n")
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, text := pflag.UnquoteUsage(f)
		p.WriteString(".TP\n")
		if f.Shorthand != "" {
			p.WriteString(`\fB\-` + f.Shorthand + `\fR, `)
		}
		p.WriteString(`\fB\-\-` + roff(f.Name) + `\fR`)
		if name != "" && f.Value.Type() != "bool" && f.Value.Type() != "count" {
			p.WriteString(` \fI` + roff(name) + `\fR`)
		}
		d, elsewhere := varies[f.Name]
		if !elsewhere {
			d = f.DefValue
		}
		if !noDefault.MatchString(d) {
			text += " (default " + d + ")"
		}
		p.WriteString("\n")
		prose(p, text)
	})
}

// varies are defaults that depend on the process that writes the page, as the page has them.
var varies = map[string]string{"servers": "", "id": "host/pid"}

// noDefault matches the defaults that say nothing.
var noDefault = regexp.MustCompile(`^(|0|0s|false|\[\])$`)

// roff is text that a formatter shows as it is.
func roff(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, `\(aq`) {
		text = `\&` + text
	}
	return text
}

var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)
