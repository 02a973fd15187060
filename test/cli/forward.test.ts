// box forward: connections to ports of a box.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectTcp, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ApiError } from '../../shared/errors.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { type BoxResult, runBox } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
await fake.addBox('pear', { observedState: 'suspended', desiredState: 'suspended' })
const { ports } = fake

/** Responds with the request in upper case when it is complete. */
ports.servers.set(3000, async (connection) => {
  connection.end((await text(connection).catch(() => '')).toUpperCase())
})
/** Connections that stay open. */
let heldCount = 0
ports.servers.set(3001, (connection) => {
  heldCount += 1
  connection.resume()
})
ports.servers.set(5432, (connection) => connection.end('database').resume())

/** Starts `box forward`, and waits for its lines on stdout. */
async function start(t: Test, ...args: string[]) {
  let child: ChildProcess | undefined
  const output = { stdout: '', stderr: '' }
  const result = runBox(fake.url, ['forward', ...args], {
    stdin: null,
    onSpawn(spawned) {
      child = spawned
      for (const name of ['stdout', 'stderr'] as const)
        spawned[name]?.on('data', (data: Buffer) => {
          output[name] += data
        })
    },
  })
  t.teardown(() => child?.kill('SIGKILL'))
  const count = args.filter((arg) => /^\d/.test(arg)).length
  const lines = await waitUntil('the ports are ready', () => {
    const lines = output.stdout.trimEnd().split('\n')
    return output.stdout.endsWith('\n') && lines.length === count && lines
  })
  return {
    lines,
    output,
    localPorts: lines.map((line) => Number(/(?:localhost:|"localPort":)(\d+)/.exec(line)?.[1])),
    result,
    async interrupt(): Promise<BoxResult> {
      child?.kill('SIGINT')
      return result
    },
  }
}

function connect(t: Test, port: number | undefined, host = '127.0.0.1'): Socket {
  const socket = connectTcp({ port: port ?? 0, host, allowHalfOpen: true })
  t.teardown(() => socket.destroy())
  return socket.on('error', () => undefined)
}

/** Also after a reset. */
const closed = (socket: Socket) =>
  socket.destroyed ? undefined : new Promise((resolve) => socket.resume().once('close', resolve))

const request = (socket: Socket, body: string) => {
  socket.end(body)
  return text(socket)
}

t.test('forwards several ports until Ctrl-C, with the end of each direction', async (t) => {
  const { lines, localPorts, interrupt } = await start(t, 'fig', '0:3000', '0:5432', '0:3001')
  t.match(lines, [/^localhost:\d+ -> fig:3000$/, /^localhost:\d+ -> fig:5432$/, /-> fig:3001$/])
  t.equal(await request(connect(t, localPorts[0]), 'hello'), 'HELLO')
  t.equal(await text(connect(t, localPorts[1])), 'database')
  const sockets = Array.from({ length: 20 }, () => connect(t, localPorts[0]))
  t.same(
    await Promise.all(sockets.map((socket, index) => request(socket, `request ${index}`))),
    sockets.map((_, index) => `REQUEST ${index}`),
  )
  const open = connect(t, localPorts[2])
  await waitUntil('the connection is open', () => heldCount === 1)
  t.match(await interrupt(), { code: 0, stderr: '' })
  await closed(open)
})

t.test('--json prints one object per port', async (t) => {
  const { lines, localPorts, interrupt } = await start(t, 'fig', '0:3000', '--json')
  const [line] = lines.map((line) => JSON.parse(line))
  t.match(line, { box: 'fig', port: 3000, localPort: localPorts[0] })
  t.equal(line.addresses[0], '127.0.0.1')
  for (const address of line.addresses) t.equal(await request(connect(t, localPorts[0], address), 'x'), 'X')
  t.equal((await interrupt()).code, 0)
})

t.test('nothing listens on the box: the connection is closed, and one message is printed', async (t) => {
  const { localPorts, output, interrupt } = await start(t, 'fig', '0:4000')
  for (let count = 0; count < 3; count++) await closed(connect(t, localPorts[0]))
  await waitUntil('the message', () => output.stderr !== '')
  ports.servers.set(4000, (connection) => connection.end('now').resume())
  t.equal(await text(connect(t, localPorts[0])), 'now')
  ports.servers.delete(4000)
  await closed(connect(t, localPorts[0]))
  const message = 'box: fig:4000: No process of the box listens on port 4000. (not_found)\n'
  t.match(await interrupt(), { code: 0, stderr: message + message })
})

t.test('the limits of the coordinator: the connection is made later', async (t) => {
  const { localPorts, interrupt } = await start(t, 'fig', '0:3000')
  const refused = () => new ApiError('rate_limited', undefined, { headers: { 'retry-after': '0' } })
  ports.refusals.push(refused(), refused(), new ApiError('box_unreachable'))
  t.equal(await request(connect(t, localPorts[0]), 'hello'), 'HELLO')
  t.match(await interrupt(), { code: 0, stderr: '' })
})

t.test('the coordinator restarts: open connections are reset, and new ones wait for it', async (t) => {
  const { localPorts, interrupt } = await start(t, 'fig', '0:3000', '0:3001')
  const heldBefore = heldCount
  const open = connect(t, localPorts[1])
  await waitUntil('the connection is open', () => heldCount > heldBefore)
  const waiting = { result: Promise.resolve('') }
  await fake.stopDuring(async () => {
    await closed(open)
    waiting.result = request(connect(t, localPorts[0]), 'later')
  })
  t.equal(await waiting.result, 'LATER')
  t.match(await interrupt(), { code: 0, stderr: '' })
})

t.test('a key that was revoked ends the command', async (t) => {
  const { localPorts, result } = await start(t, 'fig', '0:3000')
  ports.refusals.push(new ApiError('unauthorized'))
  await closed(connect(t, localPorts[0]))
  t.match(await result, { code: 4, stderr: /^box: The API key .* was rejected/ })
})

t.test('a local port that is in use', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { code, stderr } = await runBox(fake.url, ['forward', 'fig', `${port}:3000`])
  t.equal(code, 1)
  t.match(stderr, `box: Port ${port} of this machine is in use. Choose another one: ${port + 1}:3000.`)
})

t.test('refusals', async (t) => {
  const forward = (...args: string[]) => runBox(fake.url, ['forward', ...args])
  t.match(await forward('fig', 'http'), {
    code: 2,
    stderr: /'http' is not a port\. Write PORT or LOCAL:REMOTE/,
  })
  t.match(await forward('fig'), { code: 2, stderr: /missing.*ports/i })
  t.match(await forward('nosuch', '3000'), { code: 5, stderr: /No such box: 'nosuch'/ })
  t.match(await forward('pear', '3000'), {
    code: 1,
    stderr: /Box pear is suspended\. Start it with `box wake pear`\./,
  })
  t.match(await forward('pear', '3000', '--json'), {
    code: 1,
    stderr: /^\{"error":\{"code":"box_not_running"/,
  })
})
