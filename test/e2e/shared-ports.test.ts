// Shared ports of a real box: HTTP and WebSockets of a program on the box, for each audience, until the link ends.
import { once } from 'node:events'
import { request as createRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { probeCgroups } from '../../coordinator/providers/local/cgroups.ts'
import { boxNode } from '../support/box-node.ts'
import { createTestSession } from '../support/session.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCoordinatorWithBox } from './coordinator-with-box.ts'

/** Responds with the request, and sends what it receives after an upgrade back. Prints its port. 0: any free port. */
const buildApp = (port: number) => `
  const app = require("node:http").createServer((request, response) => {
    if (request.url === "/endless") return response.write("begin")
    let size = 0
    request.on("data", (data) => { size += data.length })
    request.on("end", () => {
      if (request.url === "/large") return response.end(Buffer.alloc(20000000, "x"))
      response.end(JSON.stringify({ url: request.url, headers: request.headers, size }))
    })
  })
  app.on("upgrade", (request, socket, head) => {
    socket.on("error", () => undefined)
    const { createHash } = require("node:crypto")
    const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    const accept = createHash("sha1").update(key).digest("base64")
    socket.write(["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
      "Sec-WebSocket-Accept: " + accept, "", ""].join("\\r\\n"))
    socket.write(Buffer.from([0x81, 2, 0x68, 0x69]))
  })
  app.listen(${port}, "127.0.0.1", function () { console.log(this.address().port) })`

const coordinator = await startCoordinatorWithBox(t)
const { url, api, box, boxRequest, waitForState } = coordinator
const coordinatorPort = new URL(url).port

async function startApp(port = 0): Promise<number> {
  const { json } = await boxRequest('POST', '/exec', { command: boxNode(buildApp(port)), detached: true })
  return waitUntil('the app listens', async () => {
    const { json: status } = await boxRequest('GET', `/exec/${json.processId}`)
    return Number(status.stdout)
  })
}

const share = async (body: object) => (await api('POST', `/boxes/${box.id}/port-shares`, body)).json.share

type Sent = { path?: string; headers?: Record<string, string>; method?: string; body?: Buffer }

/** Not with fetch(), which does not set Host. */
async function open(origin: string, { path = '/', headers = {}, method = 'GET', body }: Sent = {}) {
  const { host } = new URL(origin)
  const target = { host: '127.0.0.1', port: coordinatorPort, path, method }
  const request = createRequest({ ...target, headers: { host, ...headers } })
  request.on('error', () => undefined).end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  return response
}

async function send(origin: string, sent: Sent = {}) {
  const response = await open(origin, sent)
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

async function openWebSocket(t: Test, origin: string) {
  const ws = new WebSocket(`ws://127.0.0.1:${coordinatorPort}/`, { headers: { host: new URL(origin).host } })
  t.teardown(() => ws.terminate())
  ws.on('error', () => undefined)
  const [message] = (await once(ws, 'message')) as [Buffer]
  return { ws, message: message.toString() }
}

const { canFreeze } = await probeCgroups()
const port = await startApp()

t.test('a public link serves the program on the port', async (t) => {
  const { origin, id } = await share({ port, access: 'public' })
  const { status, body } = await send(origin, {
    path: '/a?b=c',
    method: 'POST',
    body: Buffer.alloc(5_000_000),
  })
  t.equal(status, 200)
  t.match(JSON.parse(body), { url: '/a?b=c', size: 5_000_000, headers: { host: new URL(origin).host } })
  t.equal((await send(origin, { path: '/large' })).body.length, 20_000_000)
  const { ws, message } = await openWebSocket(t, origin)
  t.equal(message, 'hi')
  const endless = await open(origin, { path: '/endless' })
  await once(endless, 'data')
  await api('DELETE', `/port-shares/${id}`)
  await waitUntil('the revocation closes both', () => ws.readyState === WebSocket.CLOSED && endless.closed)
  t.equal((await send(origin)).status, 404)
})

t.test('the secret of a link becomes a cookie, which the program does not get', async (t) => {
  const { origin, url: link } = await share({ port, access: 'anyone' })
  const { pathname, search } = new URL(link)
  const navigation = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  t.equal((await send(origin)).status, 403)
  const redirect = await send(origin, { path: pathname + search, headers: navigation })
  t.equal(redirect.status, 303)
  t.equal(redirect.headers.location, '/')
  const cookie = redirect.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
  const { status, body, headers } = await send(origin, {
    headers: { ...navigation, cookie: `a=1; ${cookie}` },
  })
  t.equal(status, 200)
  t.equal(JSON.parse(body).headers.cookie, 'a=1')
  t.equal(headers['cache-control'], 'private')
})

t.test('a port without a program, a suspended box, and its wake', async (t) => {
  const { origin } = await share({ port: 9, access: 'public' })
  t.match(await send(origin), { status: 502, body: /No program on box .* listens on port 9/ })
  const { origin: served } = await share({ port, access: 'public' })
  const endless = await open(served, { path: '/endless' })
  await once(endless, 'data')
  await api('POST', `/boxes/${box.id}/suspend`)
  await waitUntil('the suspend closes the response', () => endless.closed)
  await waitForState(box.id, 'suspended')
  t.match(await send(served), { status: 503, body: 'box_not_running' })
  await api('POST', `/boxes/${box.id}/wake`)
  await waitForState(box.id, 'running')
  // A suspend without a freezer terminates the program.
  t.match(await send(served), { status: canFreeze ? 200 : 502 })
  if (!canFreeze) await startApp(port)
  t.match(await send(served), { status: 200 })
})

t.test('a member opens a link with a viewer session, which ends at once with the sign-out', async (t) => {
  const { origin, id } = await share({ port, access: 'members' })
  t.equal((await send(origin)).status, 401)
  const session = await createTestSession(coordinator)
  const opened = await api('POST', `/port-shares/${id}/open`, undefined, session)
  const navigation = { 'sec-fetch-site': 'none', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const cookies: Record<string, string> = {}
  let location = opened.json.url
  for (let redirects = 0; location !== `${origin}/`; redirects++) {
    t.ok(redirects < 4, 'through the main origin to the link')
    const at = new URL(location)
    const path = at.pathname + at.search
    const redirect = await send(at.origin, {
      path,
      headers: { ...navigation, cookie: cookies[at.origin] ?? '' },
    })
    const [set = ''] = redirect.headers['set-cookie'] ?? []
    if (set !== '') cookies[at.origin] = set.split(';', 1)[0] ?? ''
    location = new URL(redirect.headers.location ?? '', at).href
  }
  const cookie = cookies[origin] ?? ''
  const headers = { cookie, 'sec-fetch-site': 'same-origin' }
  t.equal((await send(origin, { headers })).status, 200)
  await api('POST', `/boxes/${box.id}/suspend`)
  await waitForState(box.id, 'suspended')
  const page = await send(origin, { path: '/a?b', headers: { ...headers, accept: 'text/html' } })
  const link = /href="([^"]+)"/.exec(page.body)?.[1]?.replaceAll('&#38;', '&') ?? ''
  t.match(link, `${url}/share/wake?`)
  const wakePath = link.slice(url.length)
  const wakeHeaders = { ...session.headers, 'sec-fetch-site': 'same-origin' }
  const woken = await send(url, { method: 'POST', path: wakePath, headers: wakeHeaders })
  t.match(woken, { status: 303, headers: { location: `${origin}/a?b` } })
  await waitForState(box.id, 'running')
  if (!canFreeze) await startApp(port)
  t.equal((await send(origin, { path: '/a?b', headers })).status, 200)
  const endless = await open(origin, { path: '/endless', headers })
  await once(endless, 'data')
  await api('DELETE', '/session', undefined, session)
  await waitUntil('the sign-out closes the response', () => endless.closed)
  t.equal((await send(origin, { headers })).status, 401)
})
