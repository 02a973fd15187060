// Substitution of placeholders in the path and in the query of a URL.
import t from 'tap'
import { SecretValue } from '../../../../coordinator/base/sealing/secret-value.ts'
import { substituteUrl } from '../../../../coordinator/edge/secret-broker/substitute-url.ts'
import { Substitution } from '../../../../coordinator/edge/secret-broker/substitution.ts'
import type { SecretLocation } from '../../../../shared/secret-locations.ts'

const A = `dcpsec_${'a'.repeat(32)}`
const VALUE = '12:é/?#&=+ %a\n'
const replace = (url: string, locations: SecretLocation[], value: string | null = VALUE): string =>
  substituteUrl(
    url,
    new Substitution([
      {
        secretId: 'sec_a',
        name: 'A',
        placeholder: A,
        in: locations,
        value: value === null ? null : new SecretValue(value),
      },
    ]),
  )

t.test('values of the query get the value, percent-encoded', async (t) => {
  const url = replace(`/v1/me?key=${A}&a=b&auth=Bearer%20${A}&empty=&c`, ['query'])
  t.equal(
    url,
    `/v1/me?key=${encodeURIComponent(VALUE)}&a=b&auth=Bearer%20${encodeURIComponent(VALUE)}&empty=&c`,
  )
  t.equal(new URL(url, 'https://x.test').searchParams.get('key'), VALUE)
  t.equal(replace(`/v1/me?a=b?${A}`, ['query'], 'v'), '/v1/me?a=b?v', 'a query may have a question mark')
})

t.test('names in the query, and other placeholders, stay', async (t) => {
  for (const url of [`/?${A}=1&${A}`, `/?a=${A.replaceAll('a', 'b')}`, '/', '/?', '//a/../b?%'])
    t.equal(replace(url, ['header']), url)
})

t.test('a segment of the path gets the value', async (t) => {
  t.equal(replace(`/bot${A}/getMe`, ['path'], '123:AB-c_d'), '/bot123:AB-c_d/getMe')
  t.equal(replace(`/a/${A}/b?x=1`, ['path']), `/a/12:%C3%A9%2F%3F%23&=+%20%25a%0A/b?x=1`)
  t.equal(replace(`/${A}`, ['path'], '../x'), '/..%2Fx', 'the value stays in its segment')
})

t.test('a location that is not allowed is refused with the option that allows it', async (t) => {
  t.throws(() => replace(`/?key=${A}`, ['header']), {
    code: 'location_not_allowed',
    status: 403,
    message:
      /secret A is in the query of the request.*used in headers only.*`box secrets set A --keep-value --in header,query`/,
  })
  t.throws(() => replace(`/${A}/x`, ['header', 'query']), {
    code: 'location_not_allowed',
    message: /in the path.*--in header,query,path`/,
  })
})

t.test('a damaged value, and values larger than 64 KiB together, are refused', async (t) => {
  t.throws(() => replace(`/?key=${A}`, ['query'], null), { code: 'secret_damaged' })
  t.throws(() => replace(`/?key=${A.repeat(5)}`, ['query'], 'v'.repeat(16_000)), {
    code: 'headers_too_large',
  })
})
