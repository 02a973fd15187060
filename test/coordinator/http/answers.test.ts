// Compression, health, drain, and what is done with connections that are not plain HTTP requests.
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { z } from 'zod'
import { route } from '../../../coordinator/http/route.ts'
import { testServer } from './server.ts'

const sized = (size: number, type?: string) =>
  route({
    method: 'GET',
    path: `/sized/${size}${type ? '/typed' : ''}`,
    summary: 'So many bytes',
    answers: { 200: type ? null : z.string() },
    async handle({ reply }) {
      const text = `"${'a'.repeat(size - 2)}"`
      return reply.type(type ?? 'application/json; charset=utf-8').send(text)
    },
  })
const control = [sized(1024), sized(1025), sized(2_000_000), sized(5000, 'application/octet-stream')]

/** What comes back for these bytes on a connection of their own. */
function exchange(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text
    })
    socket.on('close', () => resolve(answer)).on('error', reject)
  })
}

t.test('answers over 1 KiB are compressed for who accepts that', async (t) => {
  const { url } = await testServer(t, { control })
  const get = async (path: string, encoding: string) => {
    const answer = await exchange(
      url,
      `GET /api/v1${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer dcp_owner\r\nconnection: close\r\naccept-encoding: ${encoding}\r\n\r\n`,
    )
    return {
      head: answer.slice(0, answer.indexOf('\r\n\r\n')),
      body: answer.slice(answer.indexOf('\r\n\r\n') + 4),
    }
  }
  t.notMatch((await get('/sized/1024', 'gzip')).head, 'content-encoding')
  const compressed = await get('/sized/1025', 'br, gzip, deflate')
  t.match(compressed.head, 'content-encoding: gzip')
  t.equal(gunzipSync(Buffer.from(compressed.body, 'latin1')).length, 1025)
  t.match((await get('/sized/2000000', 'gzip')).head, 'content-encoding: gzip')
  t.notMatch((await get('/sized/1025', 'identity')).head, 'content-encoding')
  t.notMatch((await get('/sized/1025', 'br')).head, 'content-encoding')
  t.notMatch((await get('/sized/5000/typed', 'gzip')).head, 'content-encoding')
})

t.test('health needs no key and outlives the drain', async (t) => {
  const { send, http } = await testServer(t, { control })
  t.same((await send('GET', '/healthz', { key: null })).json, { ok: true })
  t.equal((await send('HEAD', '/readyz', { key: null })).status, 200)
  http.refuseNew()
  t.equal((await send('GET', '/healthz', { key: null })).status, 200)
  const refused = await send('GET', '/api/v1/sized/1024')
  t.equal(refused.status, 503)
  t.equal(refused.json.error, 'control_plane_unavailable')
  t.equal(refused.headers.get('connection'), 'close')
  t.equal((await send('GET', '/v1/box/a/exec')).json.error.code, 'control_plane_unavailable')
})

t.test('what is no HTTP request gets an answer, too', async (t) => {
  const { url, send } = await testServer(t, { control })
  t.match(await exchange(url, 'hello\r\n\r\n'), /^HTTP\/1\.1 400 [\s\S]*"error":"bad_request"/)
  const long = `GET / HTTP/1.1\r\nhost: a\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`
  t.match(await exchange(url, long), /^HTTP\/1\.1 431 /)
  t.equal((await send('GET', '/healthz')).status, 200, 'and the server goes on')
})

t.test('only the boxes’ own paths leave HTTP', async (t) => {
  const { url, send } = await testServer(t, { control })
  const upgrade = (path: string) =>
    exchange(
      url,
      `GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\nauthorization: Bearer dcp_owner\r\n\r\n`,
    )
  t.match(await upgrade('/agent/tunnel'), /^HTTP\/1\.1 418 /)
  t.match(await upgrade('/api/v1/sized/1024'), /^HTTP\/1\.1 200 /)
  t.equal((await send('GET', '/agent/transfers/abc', { key: null })).status, 418)
  t.equal((await send('GET', '/agent/other', { key: null })).status, 404)
})
