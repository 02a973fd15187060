// Texts about people: who did something, and the browser of a session.
import t from 'tap'
import { formatActor, formatUser } from '../../../dashboard/data/people.ts'
import { describeUserAgent } from '../../../dashboard/data/user-agent.ts'

t.test('people and the coordinator have no ids', (t) => {
  const viewer = { userId: 'usr_1', names: new Map([['usr_2', 'Ann']]) }
  t.equal(formatUser('usr_1', viewer), 'you')
  t.equal(formatUser('usr_2', viewer), 'Ann')
  t.equal(formatUser('usr_3', viewer), 'a former member')
  t.equal(formatUser('usr_3', { ...viewer, names: new Map() }), 'another person')
  t.equal(formatUser(null, viewer), 'no user')
  t.equal(formatActor('user:usr_2', viewer), 'Ann')
  t.equal(formatActor('key:key_1', viewer), 'a key without a user')
  t.equal(formatActor('system', viewer), 'the coordinator')
  t.end()
})

t.test('the program of a session', (t) => {
  for (const [userAgent, text] of [
    [
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
      'Chrome on Linux',
    ],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0',
      'Edge on Windows',
    ],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15',
      'Safari on macOS',
    ],
    ['Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
    [
      'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
      'Chrome on Android',
    ],
    ['box/1.0.0 (laptop)', 'box 1.0.0 on laptop'],
    ['curl/8.5.0', 'curl/8.5.0'],
    ['x'.repeat(100), `${'x'.repeat(60)}…`],
    [null, 'unknown program'],
  ] as const)
    t.equal(describeUserAgent(userAgent), text)
  t.end()
})
