package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlocks returns the Go programs of a Markdown text.
func goBlocks(text string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// deadLinks returns the relative links of a Markdown text in dir that lead nowhere.
func deadLinks(text, dir string) []string {
	var dead []string
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)`).FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
			dead = append(dead, m[1])
		}
	}
	return dead
}

func TestTheGoProgramsOfTheREADMECompile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlocks(string(text))
	if len(blocks) == 0 {
		t.Fatal("the README has no Go program")
	}
	for _, block := range blocks {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", file)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	if got := deadLinks("[a](doc.go) [b](nowhere.md) [c](https://example.com)", "."); len(got) != 1 || got[0] != "nowhere.md" {
		t.Errorf("dead links of the sample: %q", got)
	}
	for _, f := range tree(t) {
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		for _, link := range deadLinks(string(f.text), filepath.Join(root, f.folder())) {
			t.Errorf("%s: %s leads nowhere", f.path, link)
		}
	}
}
