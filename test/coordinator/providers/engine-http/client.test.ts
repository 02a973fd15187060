// The HTTP client of engines, with a server that answers as a test wants.
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { EngineHttp } from '../../../../coordinator/providers/engine-http/client.ts'
import {
  EngineStatusError,
  EngineTimeoutError,
  EngineUnavailableError,
} from '../../../../coordinator/providers/engine-http/errors.ts'

async function startEngine(t: Test, listener: RequestListener) {
  // The path of a socket has at most 107 bytes.
  const dir = mkdtempSync(join(tmpdir(), 'boxwood-engine-'))
  const path = join(dir, 'engine.sock')
  const server = createServer(listener).listen(path)
  await once(server, 'listening')
  const http = new EngineHttp('Docker', { kind: 'unix', path })
  t.teardown(async () => {
    await http.close()
    server.closeAllConnections()
    server.close()
    rmSync(dir, { recursive: true })
  })
  return { http, path, server }
}

t.test('sends and receives JSON', async (t) => {
  const { http } = await startEngine(t, async (request, response) => {
    const { method, url } = request
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ method, url, body: await text(request) }))
  })
  t.same(await http.json({ method: 'POST', path: '/a', query: { b: 1, c: undefined }, json: { d: 2 } }), {
    method: 'POST',
    url: '/a?b=1',
    body: '{"d":2}',
  })
})

t.test('errors of the engine have its status and reason', async (t) => {
  const bodies = ['{"message":"first"}', '{"error":"second","error_code":404}', 'third']
  const { http } = await startEngine(t, (_, response) => {
    response.writeHead(404, { 'content-type': 'application/json' }).end(bodies.shift())
  })
  for (const reason of ['first', 'second', 'third']) {
    const error = await http.json({ method: 'GET', path: '/a' }).catch((error: unknown) => error)
    t.match(error, { status: 404, reason, message: `Docker refused GET /a with status 404: ${reason}` })
    t.ok(error instanceof EngineStatusError)
  }
})

t.test('an engine that is down is unavailable, and a silent one is late', async (t) => {
  const { http, path, server } = await startEngine(t, () => undefined)
  await t.rejects(http.json({ method: 'GET', path: '/a', timeoutMs: 50 }), {
    name: 'EngineTimeoutError',
    message: `Docker at unix://${path} did not answer GET /a within 0.05 s.`,
  })
  await t.rejects(http.stream({ method: 'GET', path: '/a', timeoutMs: 50 }), EngineTimeoutError)
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  await t.rejects(http.json({ method: 'GET', path: '/a' }), {
    name: 'EngineUnavailableError',
    message: `Docker at unix://${path} is not available: the socket does not exist; start the engine.`,
  })
})

t.test('a call whose content fails has the error of the content', async (t) => {
  const { http, server } = await startEngine(t, (request) => request.resume())
  const damaged = Readable.from(
    (async function* () {
      yield Buffer.from('one')
      throw new Error('the archive is damaged')
    })(),
  )
  await t.rejects(http.json({ method: 'PUT', path: '/a', content: damaged }), {
    message: 'the archive is damaged',
  })
  server.on('request', (request) => request.socket.destroy())
  const content = new Readable({ read: () => undefined })
  content.push('one')
  await t.rejects(http.json({ method: 'PUT', path: '/a', content }), EngineUnavailableError)
})

t.test('streams bodies in both directions', async (t) => {
  const { http } = await startEngine(t, (request, response) => request.pipe(response))
  const content = Readable.from([Buffer.from('one '), Buffer.from('two')])
  const { body } = await http.stream({ method: 'PUT', path: '/a', content })
  t.equal(await text(body), 'one two')
})

t.test('a response of JSON lines that breaks is an error', async (t) => {
  const { http } = await startEngine(t, (_, response) => {
    response.write('{"a":1}\n{"a":')
    response.write('2}\r\n')
    setImmediate(() => response.destroy())
  })
  const lines: unknown[] = []
  await t.rejects(async () => {
    for await (const line of http.lines({ method: 'GET', path: '/a' })) lines.push(line)
  }, EngineUnavailableError)
  t.same(lines, [{ a: 1 }, { a: 2 }])
})

t.test('a signal ends a call and a stream of lines', async (t) => {
  const { http } = await startEngine(t, (request, response) => {
    if (request.url === '/lines') response.write('{"a":1}\n')
  })
  const reason = new Error('not needed any more')
  const call = new AbortController()
  const ended = t.rejects(http.json({ method: 'GET', path: '/a', signal: call.signal }), reason)
  call.abort(reason)
  await ended
  const lines = new AbortController()
  await t.rejects(async () => {
    for await (const _ of http.lines({ method: 'GET', path: '/lines', signal: lines.signal }))
      lines.abort(reason)
  }, reason)
})
