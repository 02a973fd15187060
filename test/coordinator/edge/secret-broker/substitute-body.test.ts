// Substitution of placeholders in forms and JSON.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import {
  type BodyFormat,
  substituteBody,
} from '../../../../coordinator/edge/secret-broker/substitute-body.ts'
import { Substitution } from '../../../../coordinator/edge/secret-broker/substitution.ts'
import type { SecretLocation } from '../../../../shared/secret-locations.ts'

const A = `dcpsec_${'a'.repeat(32)}`
const VALUE = '-----BEGIN KEY-----\n"é\\+ &=%\n-----END KEY-----'
const replace = (
  body: string,
  format: BodyFormat,
  locations: SecretLocation[] = ['body'],
  value = VALUE,
): string =>
  substituteBody(
    Buffer.from(body),
    format,
    new Substitution([
      { secretId: 'sec_a', name: 'A', placeholder: A, in: locations, value: new SecretValue(value) },
    ]),
  ).toString()

t.test('the values of a form get the value in the encoding of forms', async (t) => {
  const text = replace(`grant_type=x&client_secret=${A}&b=pre+${A}&${A}=1`, 'form')
  const fields = new URLSearchParams(text)
  t.equal(fields.get('client_secret'), VALUE)
  t.equal(fields.get('b'), `pre ${VALUE}`)
  t.equal(fields.get(A), '1', 'names stay')
})

t.test('strings of JSON get the value, escaped', async (t) => {
  const body = { client_secret: A, nested: { list: [`key=${A}`, 1, 'é'] } }
  t.same(JSON.parse(replace(JSON.stringify(body, null, 2), 'json')), {
    client_secret: VALUE,
    nested: { list: [`key=${VALUE}`, 1, 'é'] },
  })
})

t.test('without the location, a placeholder that is a whole field is refused', async (t) => {
  const refused = {
    code: 'location_not_allowed',
    message: /secret A is in the body of the request.*--in header,body`/,
  }
  t.throws(() => replace(`a=b&client_secret=${A}`, 'form', ['header']), refused)
  t.throws(() => replace(JSON.stringify({ a: 1, client_secret: A }), 'json', ['header']), refused)
})

t.test('without the location, a placeholder in a text is sent as it is', async (t) => {
  for (const [format, body] of [
    ['form', `text=the+key+is+${A}&x`],
    ['json', JSON.stringify({ messages: [{ role: 'user', content: A }], text: `the key is ${A}` })],
    ['json', JSON.stringify([A])],
    ['json', JSON.stringify(A)],
    ['json', `{"not json": "${A}"`],
  ] as const)
    t.equal(replace(body, format, ['header']), body)
})

t.test('a body without a placeholder is not copied', async (t) => {
  const body = Buffer.from('{"a":"é"}')
  t.equal(substituteBody(body, 'json', new Substitution([])), body)
})

t.test('values larger than 64 KiB together are refused', async (t) => {
  t.throws(() => replace(`{"a":"${A.repeat(5)}"}`, 'json', ['body'], 'v'.repeat(16_000)), {
    code: 'body_too_large',
    status: 413,
  })
})
