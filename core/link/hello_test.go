package link

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAHelloIsReadAsItWasSaid(t *testing.T) {
	t.Parallel()
	for _, h := range []hello{
		{version: 1, code: byte(Raft), id: "n1", want: "n2"},
		{version: 1, code: byte(Control)},
		{version: 9, code: 200, id: strings.Repeat("a", MaxID), want: strings.Repeat("Z", MaxID)},
	} {
		said := appendHello(nil, h)
		if len(said) > maxHello {
			t.Errorf("%+v takes %d bytes, more than %d", h, len(said), maxHello)
		}
		r := bytes.NewReader(append(said, "of the stream"...))
		got, err := readHello(r)
		if err != nil || got != h {
			t.Errorf("%+v was read as %+v, %v", h, got, err)
		}
		if rest, _ := io.ReadAll(r); string(rest) != "of the stream" {
			t.Errorf("%+v: %q is left for the stream", h, rest)
		}
	}
}

func TestAHelloThatIsNoneIsNotRead(t *testing.T) {
	t.Parallel()
	good := string(appendHello(nil, hello{version: 1, code: 1, id: "n1", want: "n2"}))
	for name, test := range map[string]struct {
		said string
		want error
	}{
		"nothing":              {"", io.EOF},
		"cut in the magic":     {good[:3], io.ErrUnexpectedEOF},
		"cut behind the magic": {good[:4], io.EOF},
		"cut in the header":    {good[:6], io.ErrUnexpectedEOF},
		"cut before the ids":   {good[:8], io.EOF},
		"cut in the ids":       {good[:11], io.ErrUnexpectedEOF},
		"HTTP":                 {"GET / HTTP/1.1\r\nHost: n1\r\n\r\n", errNoHello},
		"TLS":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", errNoHello},
		"a lock client":        {strings.Repeat("0a", 32) + "\n", errNoHello},
		"an id too long":       {magic + "\x01\x01\x41\x00" + strings.Repeat("a", 65), errNoHello},
		"a wanted id too long": {magic + "\x01\x01\x02\xffn1" + strings.Repeat("a", 255), errNoHello},
		"an id with a newline": {magic + "\x01\x01\x03\x00n\n1", errNoHello},
		"an id with a slash":   {magic + "\x01\x01\x04\x00../x", errNoHello},
		"a wanted id of dots":  {magic + "\x01\x01\x02\x02n1..", errNoHello},
	} {
		if h, err := readHello(strings.NewReader(test.said)); !errors.Is(err, test.want) {
			t.Errorf("%s: %+v, %v, want %v", name, h, err, test.want)
		}
	}
}

// However a length lies, no more is asked for than the longest hello has.
func TestAHelloIsBounded(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(magic+"\x01\x01\xff\xff"), neverEnding('a'))
	counted := &counter{r: endless}
	if _, err := readHello(counted); !errors.Is(err, errNoHello) {
		t.Errorf("error %v", err)
	}
	if counted.n > helloHeader {
		t.Errorf("read %d bytes of a hello that is too long by its header of %d", counted.n, helloHeader)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func FuzzHello(f *testing.F) {
	f.Add(appendHello(nil, hello{version: 1, code: 1, id: "n1", want: "n2"}))
	f.Add(appendHello(nil, hello{version: 1, code: 2}))
	f.Add([]byte(magic + "\x01\x01\xff\xff"))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		r := bytes.NewReader(said)
		h, err := readHello(r)
		read := len(said) - r.Len()
		if read > maxHello {
			t.Fatalf("read %d bytes", read)
		}
		if err != nil {
			return
		}
		if h.id != "" && !validID(h.id) || h.want != "" && !validID(h.want) {
			t.Fatalf("took the ids of %+v", h)
		}
		if again := appendHello(nil, h); !bytes.Equal(again, said[:read]) {
			t.Fatalf("%q was read as %+v, which is said as %q", said[:read], h, again)
		}
	})
}
