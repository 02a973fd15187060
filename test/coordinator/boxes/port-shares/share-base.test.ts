// The host names of links.
import t from 'tap'
import { createShareBase, getDefaultOrigin } from '../../../../coordinator/boxes/port-shares/share-base.ts'

t.test('a link has a host name of its own under the share base', async (t) => {
  const base = createShareBase('https://boxes.example.com:8443', [])
  t.equal(base.getOrigin('fig-3000-x7k2m9q4tb'), 'https://fig-3000-x7k2m9q4tb.boxes.example.com:8443')
})

t.test('a Host header belongs to a link when it is one label before the share base', async (t) => {
  const base = createShareBase('https://example.com', ['https://app.example.com', 'http://127.0.0.1:7070'])
  for (const [host, slug] of [
    ['fig-3000.example.com', 'fig-3000'],
    ['fig-3000.example.com:7070', 'fig-3000'],
    ['FIG-3000.Example.COM.', 'fig-3000'],
    ['example.com', undefined],
    ['.example.com', undefined],
    ['a.b.example.com', undefined],
    ['app.example.com', undefined],
    ['app.example.com:443', undefined],
    ['badexample.com', undefined],
    ['fig.example.com.evil.test', undefined],
    ['127.0.0.1:7070', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const)
    t.equal(base.parseHost(host), slug, String(host))
})

t.test('without a configured share base, links are under localhost', async (t) => {
  t.equal(getDefaultOrigin('http://127.0.0.1:7070'), 'http://localhost:7070')
  t.equal(getDefaultOrigin('http://[::1]:8080'), 'http://localhost:8080')
  t.equal(getDefaultOrigin('http://0.0.0.0'), 'http://localhost')
})
