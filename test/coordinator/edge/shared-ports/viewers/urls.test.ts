// The URLs of viewers: no redirect leads to another origin, and the secret of a link does not reach the box.
import t from 'tap'
import { isLocalPath, toLocalPath } from '../../../../../coordinator/edge/shared-ports/viewers/local-path.ts'
import { takeSecret } from '../../../../../coordinator/edge/shared-ports/viewers/secret-parameter.ts'

const ORIGIN = 'https://fig-3000-x7k2m9q4ab.boxes.example.com'

t.test('a path from a link is accepted only when it stays on its origin', async (t) => {
  for (const path of ['/', '/a/b?c=d&e=%2F#f', '/a//b', "/~user/'a'?q=//evil.example", '/..//evil.example']) {
    t.equal(isLocalPath(path), true, path)
    t.equal(new URL(path, ORIGIN).origin, ORIGIN, path)
  }
  for (const path of [
    ...['', 'a', '//evil.example', '/\\evil.example', '\\\\evil.example', '\\/evil.example', '/a\\b'],
    ...['https://evil.example', 'https:/evil.example', 'javascript:alert(1)', '///evil.example'],
    ...['/\t/evil.example', '/\n/evil.example', '\n//evil.example', ' //evil.example', '/ a', '/a\r\nb: c'],
    ...['/a\0', '/\u00a0', '/ä', '/\u2028', '/\x7f', `/${'a'.repeat(5000)}`],
  ])
    t.equal(isLocalPath(path), false, encodeURIComponent(path).slice(0, 60))
})

t.test('the URL of a request becomes a local path with the same meaning', async (t) => {
  for (const [url, expected] of [
    ['/', '/'],
    ['/a?b=c d', '/a?b=c%20d'],
    ['//evil.example/a', '/.//evil.example/a'],
    ['/\\evil.example', '/./%5Cevil.example'],
    ['/a\\b', '/a%5Cb'],
    ['/\xe4', '/%E4'],
    ['/\t/evil.example', '/%09/evil.example'],
    ['http://evil.example/', '/'],
    ['*', '/'],
    ['', '/'],
    [`/${'a'.repeat(5000)}`, '/'],
  ] as const) {
    t.equal(toLocalPath(url), expected, JSON.stringify(url))
    t.equal(isLocalPath(toLocalPath(url)), true)
    t.equal(new URL(toLocalPath(url), ORIGIN).origin, ORIGIN, JSON.stringify(url))
  }
  t.equal(new URL('/.//evil.example/a', ORIGIN).pathname, '//evil.example/a')
})

t.test('only the secret is removed from a query', async (t) => {
  for (const [url, secrets, rest] of [
    ['/?boxwood_secret=s', ['s'], '/'],
    ['/a?boxwood_secret=s&b=c', ['s'], '/a?b=c'],
    ['/a?b=%zz+&boxwood_secret=s&&c', ['s'], '/a?b=%zz+&&c'],
    ['/a?b&boxwood_secret=s&boxwood_secret=t', ['s', 't'], '/a?b'],
    ['/a?boxwood%5fsecret=%73', ['s'], '/a'],
    ['/a?boxwood_secret', [''], '/a'],
    ['/a?boxwood_secret=a=b', ['a=b'], '/a'],
    ['/a?boxwood_secret=%', ['%'], '/a'],
    ['/a?', [], '/a?'],
    ['/boxwood_secret=s', [], '/boxwood_secret=s'],
    ['/a?xboxwood_secret=s&boxwood_secrets=t', [], '/a?xboxwood_secret=s&boxwood_secrets=t'],
    ['/a?b=?boxwood_secret=s', [], '/a?b=?boxwood_secret=s'],
  ] as const)
    t.same(takeSecret(url), { secrets, url: rest }, url)
})
