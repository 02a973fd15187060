// HTTP through a shared port: messages reach the box and the viewer as they were sent.
import { createHash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import {
  Agent,
  type ClientRequest,
  request as createRequest,
  createServer,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { mock } from 'node:test'
import t from 'tap'
import {
  BodyTimeoutError,
  limitBodyIdleTime,
} from '../../../../coordinator/http/forward/limit-body-idle-time.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { HOST, openRaw, type Share, startShare } from './share-fixture.ts'

function start({ host, port }: Share, options: RequestOptions = {}) {
  const request = createRequest({
    host,
    port,
    path: '/',
    ...options,
    headers: { host: HOST, ...options.headers },
  })
  request.on('error', () => undefined)
  return request
}

async function send(share: Share, options: RequestOptions = {}, body = '') {
  const request = start(share, options)
  request.end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return { response, body: await text(response), request }
}

t.test('request and response keep order, letter case and duplicates of headers', async (t) => {
  let received: IncomingMessage | undefined
  const share = await startShare(t, {
    app: (request, response) => {
      received = request
      response.sendDate = false
      response.writeHead(201, 'Made It', ['X-One', '1', 'x-Two', 'a', 'x-two', 'b', 'Content-Length', '2'])
      response.end('ok')
    },
  })
  const bytes = `PUT /a%2Fb?q=%zz HTTP/1.1\r\nhOst: ${HOST}\r\nX-b: 1\r\nx-a: 2\r\nX-B: 3\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi`
  const raw = await openRaw(t, share, bytes)
  await waitUntil('the response is complete', () => raw.isClosed)
  t.equal(received?.url, '/a%2Fb?q=%zz')
  t.same(received?.rawHeaders, [
    ...['hOst', HOST, 'X-b', '1', 'x-a', '2', 'X-B', '3', 'Content-Length', '2'],
    ...['X-Forwarded-For', '127.0.0.1', 'X-Forwarded-Proto', 'http', 'X-Forwarded-Host', HOST],
    ...['Connection', 'keep-alive'],
  ])
  t.equal(
    raw.received,
    'HTTP/1.1 201 Made It\r\nX-One: 1\r\nx-Two: a\r\nx-two: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
  )
})

t.test('connections are kept and used again on both sides', async (t) => {
  const share = await startShare(t, { app: (_request, response) => response.end('ok') })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (let i = 0; i < 3; i++) {
    const { request } = await send(share, { agent })
    ports.add(request.socket?.localPort)
    await waitUntil('the connection is free', () => Object.keys(agent.freeSockets).length === 1)
  }
  t.equal(ports.size, 1)
  t.equal(share.appSockets.size, 1)
  t.same(share.boxConnections.size, { ports: 1, connections: 1 })
  t.equal(share.held.count, 0)
})

t.test('a connection is used again without further listeners', async (t) => {
  const share = await startShare(t, { app: (_request, response) => response.end('ok') })
  const warnings: string[] = []
  const onWarning = ({ name }: Error) => void warnings.push(name)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  for (let i = 0; i < 15; i++) t.equal((await send(share)).body, 'ok')
  t.equal(share.appSockets.size, 1)
  t.same(warnings, [])
})

t.test('unused connections to a box are closed', async (t) => {
  const share = await startShare(t, {
    app: (_request, response) => response.end('ok'),
    limits: { idleMs: 1 },
  })
  t.equal((await send(share)).body, 'ok')
  await waitUntil('it is closed', () => share.boxConnections.size.connections === 0)
  t.equal(share.boxConnections.size.ports, 0)
})

t.test('a request on a connection that the app has closed meanwhile is repeated', async (t) => {
  let count = 0
  const share = await startShare(t, {
    app: (request, response) => {
      count += 1
      // The second request arrives on a connection that fails.
      if (count === 2) request.socket.destroy()
      else response.end(request.method)
    },
  })
  t.equal((await send(share)).body, 'GET')
  t.equal((await send(share)).body, 'GET')
  t.equal(count, 3)
  count = 1
  // The app may have executed this one.
  t.equal((await send(share, { method: 'POST', headers: { 'content-length': 0 } })).response.statusCode, 502)
})

t.test('bodies without a length, and trailers in both directions', async (t) => {
  const share = await startShare(t, {
    app: async (request, response) => {
      const body = await text(request)
      response.writeHead(200, { trailer: 'X-Sum' })
      response.write('got ')
      response.write(body)
      response.addTrailers({ 'X-Sum': JSON.stringify(request.trailers), 'Set-Cookie': 'a=1' })
      response.end()
    },
  })
  const request = start(share, { method: 'POST', headers: { trailer: 'X-Sent' } })
  request.write('a')
  request.write('b')
  request.addTrailers({ 'X-Sent': '1', 'X-Forwarded-For': '1.1.1.1' })
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(await text(response), 'got ab')
  t.equal(response.headers['transfer-encoding'], 'chunked')
  t.equal(response.headers.trailer, 'X-Sum')
  t.same(response.trailers, { 'x-sum': '{"x-sent":"1"}' })
})

t.test('a response that ends with its connection, and one for an HTTP/1.0 client', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      if (request.url === '/close') request.socket.end('HTTP/1.1 200 OK\r\n\r\nuntil the end')
      else response.end(request.url)
    },
  })
  t.equal((await send(share, { path: '/close' })).body, 'until the end')
  const raw = await openRaw(t, share, `GET /old HTTP/1.0\r\nHost: ${HOST}\r\n\r\n`)
  await waitUntil('the connection is closed', () => raw.isClosed)
  t.match(raw.received, /^HTTP\/1\.1 200 OK\r\n/)
  t.match(raw.received, /\r\n\r\n\/old$/)
  t.notMatch(raw.received, /chunked/i)
})

t.test('HEAD, 204 and 304 have no body and keep their headers', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      const status = Number(request.url?.slice(1))
      response.writeHead(status, status === 204 ? {} : { 'content-length': 1234, etag: '"a"' }).end()
    },
  })
  const head = await send(share, { method: 'HEAD', path: '/200' })
  t.equal(head.response.headers['content-length'], '1234')
  t.equal(head.body, '')
  const notModified = await send(share, { path: '/304' })
  t.equal(notModified.response.statusCode, 304)
  t.equal(notModified.response.headers.etag, '"a"')
  t.equal((await send(share, { path: '/204' })).response.statusCode, 204)
})

t.test('100-continue is decided by the app', async (t) => {
  const share = await startShare(t, { app: async (request, response) => response.end(await text(request)) })
  const request = start(share, { method: 'PUT', headers: { expect: '100-continue', 'content-length': 3 } })
  request.flushHeaders()
  await once(request, 'continue')
  request.end('abc')
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(await text(response), 'abc')
})

t.test('an app may refuse a body before it is sent', async (t) => {
  const app = createServer().on('checkContinue', (_request, response) =>
    response.writeHead(413).end('too large'),
  )
  const share = await startShare(t, { app })
  const request = start(share, { method: 'PUT', headers: { expect: '100-continue', 'content-length': 1e9 } })
  let isContinued = false
  request.on('continue', () => {
    isContinued = true
  })
  request.flushHeaders()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 413)
  t.equal(await text(response), 'too large')
  t.notOk(isContinued)
})

t.test('a response before the end of the request body arrives', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      response.writeHead(413).end('too large')
      request.resume()
    },
  })
  const request = start(share, { method: 'POST', headers: { 'content-length': 1e9 } })
  request.write(Buffer.alloc(65_536))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 413)
  t.equal(response.headers.connection, 'close')
  t.equal(await text(response), 'too large')
  request.destroy()
  await waitUntil('the box connection is closed', () => share.boxConnections.size.connections === 0)
})

t.test('a body that stops arriving is refused, and releases its connection', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const bodyIdleMs = 1000
  let received = ''
  const share = await startShare(t, {
    bodyIdleMs,
    app: (request, response) => {
      if (request.url === '/early') response.writeHead(200).write('x')
      request.on('data', (chunk) => {
        received += chunk
      })
    },
  })
  const request = start(share, { method: 'PUT', headers: { accept: 'text/html' } })
  for (const part of ['a', 'ab', 'abc']) {
    request.write(part.at(-1))
    await waitUntil('the app has the byte', () => received === part)
    mock.timers.tick(bodyIdleMs)
  }
  const early = start(share, { method: 'PUT', path: '/early' })
  early.write('d')
  const [stream] = (await once(early, 'response')) as [IncomingMessage]
  await waitUntil('the app has the byte', () => received === 'abcd')
  mock.timers.tick(2 * bodyIdleMs)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 408)
  t.match(await text(response), /The request body arrived too slowly/)
  await waitUntil('its connection is closed', () => share.boxConnections.size.connections === 1)
  t.notOk(stream.closed, 'an app that has responded decides how long it waits')
  early.destroy()
})

t.test('the time in which the app does not read the body does not count', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const body = new PassThrough()
  let timeouts = 0
  const outgoing = Object.assign(new EventEmitter(), {
    destroy(error: unknown) {
      if (error instanceof BodyTimeoutError) timeouts += 1
    },
  })
  body.resume()
  limitBodyIdleTime(body as unknown as IncomingMessage, outgoing as unknown as ClientRequest, 1000)
  body.pause()
  mock.timers.tick(5000)
  body.resume()
  await once(body, 'resume')
  mock.timers.tick(1000)
  t.equal(timeouts, 0, 'the bytes that follow have time to arrive')
  mock.timers.tick(1000)
  t.equal(timeouts, 1)
  outgoing.emit('close')
  mock.timers.tick(5000)
  t.equal(timeouts, 1)
  t.same([body.listenerCount('data'), body.listenerCount('resume')], [0, 0])
})

t.test('informational responses arrive before the response', async (t) => {
  const share = await startShare(t, {
    app: (_request, response) => {
      response.writeInformation(103, { link: '</a.css>; rel=preload', 'set-cookie': 'a=1' })
      response.end('ok')
    },
  })
  const raw = await openRaw(t, share, `GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`)
  await waitUntil('the response is complete', () => raw.isClosed)
  t.match(
    raw.received,
    /^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>; rel=preload\r\n\r\nHTTP\/1\.1 200 OK\r\n/i,
  )
})

t.test('server-sent events arrive one by one', async (t) => {
  let write: (text: string) => void = () => undefined
  const share = await startShare(t, {
    app: (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      write = (text) => void response.write(text)
    },
  })
  const request = start(share, { headers: { accept: 'text/event-stream', 'accept-encoding': 'gzip' } })
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(response.headers['content-encoding'], undefined)
  response.setEncoding('utf8')
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    write(event)
    t.same(await once(response, 'data'), [event])
  }
  // An event stream must not keep the coordinator from stopping.
  response.on('error', () => undefined)
  share.beginStop()
  await waitUntil('the event stream is closed', () => response.closed)
  t.equal((await send(share)).response.statusCode, 503)
})

const MIB = 2 ** 20
const CHUNK = Buffer.alloc(MIB, 'boxwood ')
const SIZE = 64
const DIGEST = (() => {
  const hash = createHash('sha256')
  for (let i = 0; i < SIZE; i++) hash.update(CHUNK)
  return hash.digest('hex')
})()

function* chunks() {
  for (let i = 0; i < SIZE; i++) yield CHUNK
}

async function digest(stream: IncomingMessage): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of stream) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

t.test('64 MiB down and up, byte by byte', async (t) => {
  const share = await startShare(t, {
    app: async (request, response) => {
      if (request.method === 'GET') Readable.from(chunks()).pipe(response)
      else response.end(await digest(request))
    },
  })
  const download = start(share)
  download.end()
  const [response] = (await once(download, 'response')) as [IncomingMessage]
  t.equal(await digest(response), DIGEST)
  const upload = start(share, { method: 'PUT' })
  Readable.from(chunks()).pipe(upload)
  const [answer] = (await once(upload, 'response')) as [IncomingMessage]
  t.equal(await text(answer), DIGEST)
})

t.test('a slow reader slows the app down', async (t) => {
  let written = 0
  let isBlocked = false
  const share = await startShare(t, {
    app: async (_request, response) => {
      for (const chunk of chunks()) {
        if (response.destroyed) return
        written += 1
        if (response.write(chunk)) continue
        isBlocked = true
        await once(response, 'drain')
        isBlocked = false
      }
      response.end()
    },
  })
  const request = start(share)
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.pause()
  let before = -1
  await waitUntil('the app waits for the viewer', () => {
    const isStill = isBlocked && written === before
    before = written
    return isStill
  })
  t.ok(written < SIZE, `${written} MiB of ${SIZE} were written`)
  t.equal(await digest(response), DIGEST)
})

t.test('a slow app slows the viewer down', async (t) => {
  let received: IncomingMessage | undefined
  const share = await startShare(t, {
    app: (request) => {
      received = request
    },
  })
  const request = start(share, { method: 'PUT' })
  let written = 0
  let isBlocked = false
  const write = async () => {
    for (const chunk of chunks()) {
      written += 1
      if (request.write(chunk)) continue
      isBlocked = true
      await once(request, 'drain')
      isBlocked = false
    }
    request.end()
  }
  const done = write()
  let before = -1
  await waitUntil('the viewer waits for the app', () => {
    const isStill = isBlocked && written === before && received !== undefined
    before = written
    return isStill
  })
  t.ok(written < SIZE, `${written} MiB of ${SIZE} were written`)
  if (received) t.equal(await digest(received), DIGEST)
  await done
  request.destroy()
})

t.test('a viewer that disconnects ends the request to the box', async (t) => {
  const share = await startShare(t, { app: (_request, response) => void response.write('begin') })
  const request = start(share)
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => undefined)
  await once(response, 'data')
  request.destroy()
  await waitUntil('the app sees the disconnect', () => share.appSockets.size === 0)
  await waitUntil('nothing is open', () => share.open.size === 0 && share.boxConnections.size.ports === 0)
})

t.test('an incomplete upload is incomplete for the app', async (t) => {
  let isAborted = false
  const share = await startShare(t, {
    app: (request) => {
      request.on('error', () => {
        isAborted = true
      })
      request.resume()
    },
  })
  const request = start(share, { method: 'PUT', headers: { 'content-length': 100 } })
  request.write('part')
  await waitUntil('the app has the request', () => share.appSockets.size === 1)
  request.destroy()
  await waitUntil('the app sees the end', () => isAborted)
})

t.test('a response that the app does not complete is incomplete for the viewer', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      if (request.url === '/length') response.writeHead(200, { 'content-length': 100 })
      response.write('part')
      setImmediate(() => request.socket.destroy())
    },
  })
  for (const path of ['/length', '/chunked']) {
    const request = start(share, { path })
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await t.rejects(text(response), { code: 'ECONNRESET' }, path)
  }
})

t.test('basic auth and cookies of the app', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      const { authorization, cookie } = request.headers
      if (authorization === undefined)
        response.writeHead(401, { 'www-authenticate': 'Basic realm="app"' }).end()
      else
        response
          .setHeader('set-cookie', ['a=1; Path=/', 'b=2; Domain=shares.test', 'boxwood_viewer=x'])
          .end(`${authorization} ${cookie}`)
    },
  })
  const refused = await send(share)
  t.equal(refused.response.statusCode, 401)
  t.equal(refused.response.headers['www-authenticate'], 'Basic realm="app"')
  const { body, response } = await send(share, {
    headers: { authorization: 'Basic YTpi', cookie: 'a=1; b=2' },
  })
  t.equal(body, 'Basic YTpi a=1; b=2')
  t.same(response.headers['set-cookie'], ['a=1; Path=/', 'b=2'])
})

t.test('a response that is not valid HTTP is an error of the app', async (t) => {
  const share = await startShare(t, {
    app: (request) => {
      const responses: Record<string, string> = {
        '/garbage': 'garbage\r\n\r\n',
        '/lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd',
        '/both': 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
        '/header': 'HTTP/1.1 200 OK\r\nX-A: \x01\r\nContent-Length: 0\r\n\r\n',
        '/upgrade': 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n',
        '/nothing': '',
      }
      request.socket.end(responses[request.url ?? ''] ?? '', 'latin1')
    },
  })
  const messages: [string, RegExp][] = [
    [
      '/garbage',
      /port 3000 of box fig sent .*does not begin with a status line.* \(HPE_INVALID_CONSTANT\)\.$/,
    ],
    ['/lengths', /several Content-Length headers \(HPE_UNEXPECTED_CONTENT_LENGTH\)\.$/],
    ['/both', /both Content-Length and Transfer-Encoding.* \(HPE_INVALID_TRANSFER_ENCODING\)\.$/],
    ['/header', /a header has a character that is not allowed.* \(HPE_INVALID_HEADER_TOKEN\)\.$/],
    ['/upgrade', /not valid HTTP\.$/],
    ['/nothing', /closed the connection without a complete response\.$/],
  ]
  for (const [path, message] of messages) {
    const { response, body } = await send(share, { path })
    t.equal(response.statusCode, 502, path)
    t.match(JSON.parse(body), { error: 'box_unreachable', message }, path)
  }
})

t.test('a request with an unclear length never reaches the app', async (t) => {
  let count = 0
  const share = await startShare(t, {
    app: (_request, response) => {
      count += 1
      response.end()
    },
  })
  const smuggled = `0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`
  for (const headers of [
    'Content-Length: 4\r\nTransfer-Encoding: chunked',
    'Content-Length: 4\r\nContent-Length: 5',
    'Content-Length: +4',
    'Transfer-Encoding: chunked, gzip',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding : chunked',
    `Host: ${HOST}`,
  ]) {
    const raw = await openRaw(t, share, `POST / HTTP/1.1\r\nHost: ${HOST}\r\n${headers}\r\n\r\n${smuggled}`)
    await waitUntil('the request is refused', () => raw.received.includes('\r\n\r\n'))
    t.match(raw.received, /^HTTP\/1\.1 400 /, headers)
    raw.socket.destroy()
  }
  t.equal(count, 0)
})

t.test('limits: connections of a box, and requests to a port', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      if (request.url === '/wait') response.writeHead(200).flushHeaders()
      else response.end('ok')
    },
    limits: { boxConnections: 1, portRequests: 2 },
  })
  const first = start(share, { path: '/wait' })
  first.end()
  await once(first, 'response')
  const busy = await send(share)
  t.equal(busy.response.statusCode, 503)
  t.match(JSON.parse(busy.body), { error: 'rate_limited' })
  first.destroy()
  await waitUntil('the first is closed', () => share.boxConnections.size.connections === 0)
  t.equal((await send(share)).body, 'ok')
})

t.test('requests wait for a connection, until their viewer disconnects', async (t) => {
  const share = await startShare(t, {
    app: (request, response) => {
      if (request.url === '/wait') response.writeHead(200).flushHeaders()
      else response.end('ok')
    },
    limits: { portConnections: 1, portRequests: 2 },
  })
  const first = start(share, { path: '/wait' })
  first.end()
  await once(first, 'response')
  for (let i = 0; i < 3; i++) {
    const waiting = start(share)
    waiting.end()
    await waitUntil('it waits', () => share.open.size === 2)
    t.equal((await send(share)).response.statusCode, 503)
    waiting.destroy()
    await waitUntil('it is removed', () => share.open.size === 1)
  }
  const last = send(share)
  await waitUntil('it waits', () => share.open.size === 2)
  t.equal(share.appSockets.size, 1)
  first.destroy()
  t.equal((await last).body, 'ok')
})

t.test('a complete response arrives although the app resets the connection after it', async (t) => {
  const body = 'x'.repeat(100_000)
  const share = await startShare(t, {
    app: (request, response) => {
      response
        .writeHead(413, { 'content-length': body.length })
        .end(body, () => request.socket.resetAndDestroy())
    },
  })
  const request = start(share, { method: 'POST', headers: { 'content-length': 1e9 } })
  request.write('part')
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(await text(response), body)
  request.destroy()
})
