// Which requests count as sent by a page of this origin.
import t from 'tap'
import { assertSameOrigin } from '../../../coordinator/http/cross-origin.ts'

const HOST = 'boxes.example.com'

t.test('accepts pages of this origin, and clients that are not browsers', async (t) => {
  for (const headers of [
    { host: HOST },
    {},
    { host: HOST, origin: `https://${HOST}` },
    { host: HOST, origin: `https://${HOST}`, 'sec-fetch-site': 'same-origin' },
    { host: HOST, 'sec-fetch-site': 'none' },
  ])
    t.doesNotThrow(() => assertSameOrigin(headers), JSON.stringify(headers))
})

t.test('rejects pages of other origins, with and without Sec-Fetch-Site', async (t) => {
  for (const headers of [
    { host: HOST, origin: 'https://evil.example' },
    { host: HOST, origin: `https://port.${HOST}` },
    { host: HOST, origin: `https://${HOST}:8443` },
    { host: HOST, origin: 'null' },
    { host: HOST, origin: 'not an origin' },
    // HTTP/1.0 has no Host.
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { host: HOST, 'sec-fetch-site': 'same-site' },
    { host: HOST, 'sec-fetch-site': 'cross-site' },
    { host: HOST, origin: `https://${HOST}`, 'sec-fetch-site': 'same-origin, cross-site' },
  ])
    t.throws(() => assertSameOrigin(headers), { code: 'not_allowed' }, JSON.stringify(headers))
})
