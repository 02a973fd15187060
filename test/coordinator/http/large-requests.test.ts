// Large cookies, which pages of other hosts of a site can set for the coordinator: they are ignored, or a page deletes them.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { figRoute, startTestServer } from './test-server.ts'

const createCookies = (count: number) =>
  Array.from({ length: count }, (_, i) => `bomb${i}=${'x'.repeat(3900)}`).join('; ')

/** Sends the headers, the cookies last, and reads the response until its end. */
async function send(url: string, headers: string, path = '/api/v1/fig') {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\n`)
  socket.write(`connection: close\r\n${headers}\r\n\r\n`)
  return text(socket)
}

t.test('cookies of other pages are ignored up to 64 KiB', async (t) => {
  const { url } = await startTestServer(t, { control: [figRoute] })
  t.match(await send(url, `cookie: ${createCookies(16)}`), /^HTTP\/1\.1 200 /)
})

t.test('a browser with larger cookies gets a page that deletes them', async (t) => {
  const { url } = await startTestServer(t, { control: [figRoute] })
  // As many as Chromium and Firefox store for a site.
  for (const count of [30, 180]) {
    const response = await send(url, `cookie: ${createCookies(count)}`)
    t.match(response, /^HTTP\/1\.1 431 /)
    const [head = '', body = ''] = response.split('\r\n\r\n')
    const script = /<script type="module">([\s\S]*)<\/script>/.exec(body)?.[1] ?? ''
    t.match(script, /document\.cookie = /)
    const hash = createHash('sha256').update(script).digest('base64')
    t.ok(head.includes(`content-security-policy: default-src 'none'; script-src 'sha256-${hash}'; `))
    t.match(head, /\r\ncache-control: no-store\r\n/)
    t.equal(/content-length: (\d+)/.exec(head)?.[1], String(Buffer.byteLength(body)))
  }
})

t.test('other headers and the URL have a limit of their own', async (t) => {
  const { url } = await startTestServer(t, { control: [figRoute] })
  const upgrade = `upgrade: websocket\r\nconnection: upgrade\r\nx: ${'a'.repeat(40_000)}`
  for (const response of [
    await send(url, `x: ${'a'.repeat(40_000)}`),
    await send(url, upgrade, '/api/v1/fig'),
    await send(url, upgrade, '/agent/tunnel'),
    await send(url, 'x: a', `/api/v1/fig?${'a'.repeat(40_000)}`),
  ]) {
    t.match(response, /^HTTP\/1\.1 431 /)
    t.match(response, /"error":"bad_request","message":"The request line and headers are too large\./)
  }
  t.match(await send(url, `x: ${'a'.repeat(30_000)}`), /^HTTP\/1\.1 200 /)
})
