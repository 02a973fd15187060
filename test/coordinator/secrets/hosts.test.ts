// Which hosts a secret may have, and which patterns a change narrows.
import t from 'tap'
import { listNarrowed, normalizeHosts } from '../../../coordinator/secrets/hosts.ts'
import { newPlaceholder } from '../../../coordinator/secrets/placeholders.ts'
import { covers } from '../../../coordinator/secrets/rules.ts'
import { PLACEHOLDER_PATTERN } from '../../../shared/api/secrets.ts'
import { KNOWN_SECRETS } from '../../../shared/known-secrets.ts'

const rules = {
  ownNames: ['boxwood.example.com', '127.0.0.1'],
  shareHost: 'boxes.example.com',
  allowsSingleLabels: false,
}
const normalize = (host: string, changes: Partial<typeof rules> = {}) =>
  normalizeHosts([host], { ...rules, ...changes })[0]

t.test('hosts are stored in lowercase ASCII', async (t) => {
  const accepted: [host: string, stored: string][] = [
    ['api.example.net', 'api.example.net'],
    ['API.Example.NET', 'api.example.net'],
    ['api.example.net.', 'api.example.net'],
    ['*.example.net', '*.example.net'],
    ['*.Example.net.', '*.example.net'],
    ['*.a.b.example.net', '*.a.b.example.net'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example', 'xn--bcher-kva.example'],
    ['*.bücher.example', '*.xn--bcher-kva.example'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['example。net', 'example.net'],
    ['github.io', 'github.io'],
    ['*.octocat.github.io', '*.octocat.github.io'],
    ['service.internal', 'service.internal'],
    ['*.corp.internal', '*.corp.internal'],
    ['example.com', 'example.com'],
    ['other.example.com', 'other.example.com'],
    [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
    ['1.example.net', '1.example.net'],
  ]
  for (const [host, stored] of accepted) t.equal(normalize(host), stored, host)
  t.same(normalizeHosts(['A.example.net', 'b.example.net', 'a.example.net.'], rules), [
    'a.example.net',
    'b.example.net',
  ])
  t.same(normalizeHosts([], rules), [])
})

t.test('what is not a host, or not of one owner, is refused with its position', async (t) => {
  const refused: [reason: RegExp, ...hosts: string[]][] = [
    [
      /must be a host name such as/,
      ...[
        '',
        '.',
        'a b.example',
        'https://example.net',
        'example.net:443',
        'example.net/path',
        'a@b.example',
      ],
      ...['*', '*.', '**.example.net', 'a.*.example.net', '*example.net', 'a*.example.net', '.example.net'],
      ...['a..example.net', '-a.example.net', 'a-.example.net', 'a_b.example.net', 'example.net..'],
      ...[
        '[::1]',
        '::1',
        'a.1',
        'a.0x1',
        'example.net#a',
        'example.net?a',
        'example.net\\a',
        'a%2eexample.net',
      ],
      ...['example\u0000.net', 'example.net\n', `${'a'.repeat(64)}.example`],
      ...[`${'a.'.repeat(130)}example`, 'a\u202e.example'],
    ],
    [/not an IP address/, '127.0.0.1', '10.0.0.1.', '0x7f.1', '127.1', '*.0.0.1', '１２７.0.0.1'],
    [/with a domain/, 'localhost', 'intranet'],
    [/public suffix/, '*.com', '*.co.uk', '*.github.io', '*.internal', '*.intranet', '*.s3.amazonaws.com'],
    [
      /name of this coordinator/,
      ...['boxwood.example.com', 'BOXWOOD.example.com.', '*.example.com', 'boxes.example.com'],
      ...['fig-80.boxes.example.com', '*.boxes.example.com', '*.fig.boxes.example.com'],
    ],
  ]
  for (const [message, ...hosts] of refused)
    for (const host of hosts)
      t.throws(
        () => normalizeHosts(['api.example.net', host], rules),
        {
          code: 'invalid_host',
          message: new RegExp(`^hosts\\[1\\] "[^]*" .*${message.source}`),
        },
        JSON.stringify(host),
      )
})

t.test('names without a domain are for operators who admit private addresses', async (t) => {
  const isPrivate = { allowsSingleLabels: true }
  t.equal(normalize('gitlab', isPrivate), 'gitlab')
  t.throws(() => normalize('*.gitlab', isPrivate), /public suffix/)
  t.throws(() => normalize('1', isPrivate), /not an IP address/)
})

t.test('a change narrows the patterns that the new ones do not cover', async (t) => {
  t.same(listNarrowed(['a.example.net', '*.b.example.net'], ['*.example.net']), [])
  t.same(listNarrowed(['*.example.net'], ['a.example.net', '*.b.example.net']), ['*.example.net'])
  t.same(listNarrowed(['example.net', 'a.example.net'], ['*.example.net']), ['example.net'])
  t.same(listNarrowed(['*.example.net', 'a.example.net'], ['a.example.net']), ['*.example.net'])
})

t.test('a secret of the workspace covers every box, another one those that a grant names', async (t) => {
  const box = { id: 'b', owner_user_id: 'ada' }
  const ofBox = (box_id: string) => ({ box_id, user_id: null })
  const granted = { scope: 'granted' } as const
  const ofUser = (user_id: string) => ({ box_id: null, user_id })
  t.ok(covers({ scope: 'workspace' }, [], box, false))
  t.notOk(covers(granted, [], box, true))
  t.ok(covers(granted, [ofBox('a'), ofBox('b')], box, false))
  t.notOk(covers(granted, [ofBox('a')], box, true))
  t.ok(covers(granted, [ofUser('ada')], box, true))
  t.notOk(covers(granted, [ofUser('ada')], box, false), 'the owner has left the workspace')
  t.notOk(covers(granted, [ofUser('bob')], box, true))
})

t.test('placeholders are random, and may have a prefix', async (t) => {
  const placeholders = Array.from({ length: 100 }, () => newPlaceholder())
  t.equal(new Set(placeholders).size, 100)
  for (const placeholder of placeholders) t.match(placeholder, new RegExp(`^${PLACEHOLDER_PATTERN.source}$`))
  t.match(newPlaceholder('xoxb-'), new RegExp(`^xoxb-${PLACEHOLDER_PATTERN.source}$`))
})

t.test('the hosts of well-known secrets are valid', async (t) => {
  for (const [name, { hosts }] of Object.entries(KNOWN_SECRETS))
    t.same(normalizeHosts(hosts, rules), hosts, name)
})
