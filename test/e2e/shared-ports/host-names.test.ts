// Whatever a client sends as Host: a name under the share base never reaches the API.
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { startTestCoordinator } from '../../support/coordinator.ts'

async function get(url: string, host: string, key: string) {
  const sent = request(`${url}/api/v1/me`, {
    headers: { host, accept: 'text/html', authorization: `Bearer ${key}` },
  })
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  return { status: response.statusCode, type: response.headers['content-type'] }
}

t.test('names under the share base', async (t) => {
  const { url, key } = await startTestCoordinator(t, {
    env: { BOXWOOD_SHARE_BASE: 'links.example.com', BOXWOOD_PUBLIC_URL: 'https://app.links.example.com' },
  })
  for (const host of ['app.links.example.com', 'APP.links.example.com.:443', 'links.example.com', '[::1]:80'])
    t.match(await get(url, host, key), { status: 200, type: /json/ }, host)
  for (const name of ['slug', 'x.slug', 'x.y.slug', 'x.app', 'user@slug', ''])
    for (const suffix of ['', '.', ':80', '.:80', ':a'])
      t.match(
        await get(url, `${name}.Links.example.com${suffix}`, key),
        { status: 404, type: /html/ },
        `${name} ${suffix}`,
      )
})
