// The host names of links.
import { pino } from 'pino'
import t from 'tap'
import {
  createShareBase,
  findCommonSite,
  getDefaultOrigin,
} from '../../../coordinator/port-shares/share-base.ts'
import { startTestCoordinator } from '../../support/coordinator.ts'

t.test('a link has a host name of its own under the share base', async (t) => {
  const base = createShareBase('https://boxes.example.com:8443', [])
  t.equal(base.getOrigin('fig-3000-x7k2m9q4tb'), 'https://fig-3000-x7k2m9q4tb.boxes.example.com:8443')
})

t.test('a Host header belongs to a link when it is under the share base, in every form', async (t) => {
  const base = createShareBase('https://example.com', ['https://app.example.com', 'http://127.0.0.1:7070'])
  for (const [host, slug] of [
    ['fig-3000.example.com', 'fig-3000'],
    ['fig-3000.example.com:7070', 'fig-3000'],
    ['FIG-3000.Example.COM.', 'fig-3000'],
    ['example.com', undefined],
    ['.example.com', ''],
    ['a.b.example.com', 'a.b'],
    ['x.fig-3000.example.com:7070', 'x.fig-3000'],
    ['fig-3000.example.com..', 'fig-3000'],
    ['fig-3000.example.com.:80', 'fig-3000'],
    ['fig-3000.example.com:', 'fig-3000'],
    ['fig-3000.example.com:80:80', 'fig-3000'],
    ['fig-3000.example.com:a', 'fig-3000'],
    ['user:password@fig-3000.example.com', 'fig-3000'],
    ['app.example.com@fig-3000.example.com', 'fig-3000'],
    [' fig-3000.example.com\t', 'fig-3000'],
    ['x.app.example.com', 'x.app'],
    ['APP.example.com.:443', undefined],
    ['[::1]:7070', undefined],
    ['[::1].example.com', undefined],
    ['fig-3000.example.com@evil.test', undefined],
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

t.test('the site that links and the coordinator have in common', async (t) => {
  for (const [shareBase, publicUrl, site] of [
    ['https://boxes.example.com', 'https://boxes.example.com', 'example.com'],
    ['https://ports.example.com', 'https://boxes.example.com', 'example.com'],
    ['https://example.com', 'https://boxes.example.com', 'example.com'],
    ['https://example-ports.net', 'https://boxes.example.com', null],
    ['https://a.co.uk', 'https://b.co.uk', null],
    // A suffix of the Public Suffix List, under which each link is a site.
    ['https://fly.dev', 'https://boxes.fly.dev', null],
    ['http://localhost:7070', 'http://localhost:7070', null],
    ['http://boxwood.localhost:7070', 'http://boxwood.localhost:7070', 'boxwood.localhost'],
    ['http://localhost:7070', 'http://127.0.0.1:7070', null],
  ] as const)
    t.equal(findCommonSite(shareBase, publicUrl), site, `${shareBase} ${publicUrl}`)
})

t.test('the start warns when links and the dashboard are on one site', async (t) => {
  for (const [shareBase, site] of [
    ['boxes.example.com', 'example.com'],
    ['example-ports.net', undefined],
  ] as const) {
    const lines: string[] = []
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) })
    const env = { BOXWOOD_PUBLIC_URL: 'https://boxes.example.com', BOXWOOD_SHARE_BASE: shareBase }
    await startTestCoordinator(t, { env, log })
    const [warning] = lines.filter((line) => line.includes('on one site'))
    t.equal(warning === undefined ? undefined : / site, ([\w.]+):/.exec(warning)?.[1], site)
  }
})
