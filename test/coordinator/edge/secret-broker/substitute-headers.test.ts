// Substitution of placeholders in the headers of a request.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { substituteHeaders } from '../../../../coordinator/edge/secret-broker/substitute-headers.ts'
import { Substitution } from '../../../../coordinator/edge/secret-broker/substitution.ts'
import type { OpenedSecret } from '../../../../coordinator/edge/secret-broker/value-cache.ts'
import type { HeaderPair } from '../../../../coordinator/http/forward/raw-headers.ts'

const placeholder = (char: string) => `dcpsec_${char.repeat(32)}`
const A = placeholder('a')
const B = placeholder('b')
const PREFIXED = `xoxb-${placeholder('c')}`
const LINES = placeholder('e')
const createSecret = (name: string, placeholder: string, value: string): OpenedSecret => ({
  secretId: `sec_${name.toLowerCase()}`,
  name,
  placeholder,
  in: ['header'],
  value: new SecretValue(value),
})
const all = [
  createSecret('A', A, `$&$1-${B}`),
  createSecret('B', B, 'geheim-é'),
  createSecret('C', PREFIXED, 'xoxb-real'),
  createSecret('LINES', LINES, 'one\ntwo'),
]
function substitute(headers: HeaderPair[], secrets = all) {
  const substitution = new Substitution(secrets)
  return { ...substituteHeaders(headers, substitution), secretIds: substitution.secretIds }
}
const base64 = (text: string) => Buffer.from(text).toString('base64')
const replace = (name: string, value: string) => {
  const { headers, secretIds } = substitute([[name, value]])
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
  const { basic } = substitute([['Authorization', `Basic ${base64(`me:${B}`)}`]])
  t.same(basic, [base64('me:geheim-é')])
})

t.test('does not change header names, and headers that are reflected or stored', async (t) => {
  t.same(substitute([[A, 'x']]).headers, [[A, 'x']])
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

t.test('a value with several lines is sent only where it is encoded', async (t) => {
  t.throws(() => replace('Authorization', `Bearer ${LINES}`), { code: 'value_has_lines', status: 400 })
  const { headers } = substitute([['Authorization', `Basic ${base64(`me:${LINES}`)}`]])
  t.same(headers, [['Authorization', `Basic ${base64('me:one\ntwo')}`]])
})

t.test('a secret that is not used in headers is refused there', async (t) => {
  const secrets: OpenedSecret[] = [{ ...createSecret('A', A, 'value-of-a'), in: ['query', 'body'] }]
  for (const value of [A, `Basic ${base64(`me:${A}`)}`])
    t.throws(() => substitute([['Authorization', value]], secrets), {
      code: 'location_not_allowed',
      message:
        /secret A is in headers of .* used in the query and the body only.*`box secrets set A --keep-value --in query,body,header`/,
    })
  t.same(substitute([['User-Agent', A]], secrets).headers, [['User-Agent', A]], 'a header that is skipped')
})

t.test('many placeholders cost no more memory than headers may have', async (t) => {
  const secrets = [createSecret('A', A, 'v'.repeat(16_000))]
  t.throws(() => substitute([['X-A', A.repeat(800)]], secrets), { code: 'headers_too_large' })
})
