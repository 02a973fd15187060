// Substitution of placeholders in the headers of a request.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { substitute } from '../../../../coordinator/edge/secret-broker/substitute.ts'

const placeholder = (char: string) => `dcpsec_${char.repeat(32)}`
const A = placeholder('a')
const B = placeholder('b')
const PREFIXED = `xoxb-${placeholder('c')}`
const secrets = [
  { secretId: 'sec_a', name: 'A', placeholder: A, value: new SecretValue(`$&$1-${B}`) },
  { secretId: 'sec_b', name: 'B', placeholder: B, value: new SecretValue('geheim-é') },
  { secretId: 'sec_c', name: 'C', placeholder: PREFIXED, value: new SecretValue('xoxb-real') },
]
const base64 = (text: string) => Buffer.from(text).toString('base64')
const replace = (name: string, value: string) => {
  const { headers, secretIds } = substitute([[name, value]], secrets)
  return [headers[0]?.[1], ...secretIds]
}

t.test('replaces placeholders in values', async (t) => {
  t.same(replace('Authorization', `Bearer ${A}`), [`Bearer $&$1-${B}`, 'sec_a'], 'once, and literally')
  t.same(replace('x-api-key', B), [Buffer.from('geheim-é').toString('latin1'), 'sec_b'], 'UTF-8')
  t.same(replace('Cookie', `a=${PREFIXED}; b=${B}; c=${PREFIXED}`).slice(1).toSorted(), ['sec_b', 'sec_c'])
  t.same(replace('X-Token', PREFIXED), ['xoxb-real', 'sec_c'], 'with the prefix of the placeholder')
  t.same(replace('X-Token', placeholder('c')), [placeholder('c')], 'not without it')
  t.same(replace('X-Token', placeholder('d')), [placeholder('d')], 'another placeholder stays')
  t.same(replace('Sec-WebSocket-Protocol', `realtime, key.${PREFIXED}`), ['realtime, key.xoxb-real', 'sec_c'])
})

t.test('replaces placeholders in Basic credentials', async (t) => {
  t.same(replace('Authorization', `Basic ${base64(`me:${B}`)}`), [`Basic ${base64('me:geheim-é')}`, 'sec_b'])
  t.same(replace('authorization', `basic ${base64(`${PREFIXED}:x`)}`), [
    `basic ${base64('xoxb-real:x')}`,
    'sec_c',
  ])
  t.same(replace('Authorization', 'Basic bWU6eA=='), ['Basic bWU6eA=='], 'others stay as they are')
  const { basic } = substitute([['Authorization', `Basic ${base64(`me:${B}`)}`]], secrets)
  t.same(basic, [base64('me:geheim-é')])
})

t.test('does not change header names, and headers that are reflected or stored', async (t) => {
  t.same(substitute([[A, 'x']], secrets).headers, [[A, 'x']])
  for (const name of [
    ...[
      'User-Agent',
      'referer',
      'Origin',
      'Host',
      'traceparent',
      'tracestate',
      'X-Request-Id',
      'x-b3-traceid',
    ],
    ...[
      'x-amz-meta-note',
      'x-amz-tagging',
      'x-goog-meta-a',
      'X-Object-Meta-A',
      'If-Match',
      'If-None-Match',
      'Content-Disposition',
    ],
    ...[
      'Content-Type',
      'Range',
      'Accept',
      'Accept-Language',
      'Forwarded',
      'X-Forwarded-For',
      'Via',
      'Sec-WebSocket-Key',
    ],
  ])
    t.same(replace(name, A), [A], name)
})

t.test('without secrets, nothing changes', async (t) => {
  t.same(substitute([['Authorization', A]], []).headers, [['Authorization', A]])
})
