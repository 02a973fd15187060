// What enters and leaves a terminal of the dashboard as text, and the ids of its clients.
import t from 'tap'
import { storeClientId, takeClientId } from '../../../dashboard/data/terminal-clients.ts'
import {
  countLines,
  formatExit,
  hasSeveralLines,
  parseWebLink,
  preparePaste,
} from '../../../dashboard/data/terminal-text.ts'

t.test('pastes', async (t) => {
  t.equal(preparePaste('a\u001b[201~b'), 'a␛[201~b', 'a paste cannot end its brackets')
  t.same(['ls', 'ls\n', 'a\rb', 'a\r\nb\r\n'].map(hasSeveralLines), [false, true, true, true])
  t.same(['ls', 'ls\n', 'a\rb', 'a\r\nb\r\n'].map(countLines), [1, 1, 2, 2])
})

t.test('only links to web pages are opened', async (t) => {
  t.equal(parseWebLink('https://example.com/a'), 'https://example.com/a')
  for (const text of ['javascript:alert(1)', 'file:///etc/passwd', 'data:text/html,x', '//x', 'x'])
    t.equal(parseWebLink(text), null, text)
})

t.test('exits', async (t) => {
  const exit = {
    type: 'exit',
    exitCode: 3,
    signal: null,
    timedOut: false,
    stdoutOffset: 0,
    stderrOffset: 0,
  } as const
  t.match(formatExit({ ...exit, status: 'exited' }), 'exit status 3')
  t.match(formatExit({ ...exit, status: 'killed', exitCode: null, signal: 'HUP' }), 'killed by HUP')
  t.match(formatExit({ ...exit, status: 'lost', exitCode: null }), 'unknown')
})

t.test('a page takes the id of its client once', async (t) => {
  const items = new Map<string, string>()
  const store = {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
  t.equal(takeClientId(store, 'b', 'main'), null)
  storeClientId(store, 'b', 'main', 'c1')
  t.equal(takeClientId(store, 'b', 'other'), null)
  t.equal(takeClientId(store, 'b', 'main'), 'c1')
  t.equal(takeClientId(store, 'b', 'main'), null, 'a copy of the tab is another client')
  t.equal(takeClientId(null, 'b', 'main'), null)
})
