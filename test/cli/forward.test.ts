// box forward: connections to ports of a box.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { boxNode } from '../support/box-node.ts'
import { refuseUpgrade } from '../support/fault-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { type BoxResult, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { edge } = coordinator
const { id: pearId } = await coordinator.addBox('pear')
await coordinator.api('POST', `/boxes/${pearId}/suspend`)
await coordinator.waitForState(pearId, 'suspended')

/** Starts servers on the box, and returns their ports. `onConnection` is JavaScript, with the variable `socket`. */
async function serve(...servers: { onConnection: string; port?: number }[]): Promise<number[]> {
  const list = servers.map(
    ({ onConnection, port = 0 }) => `[${port}, (socket, server) => { ${onConnection} }]`,
  )
  const script = `
    Promise.all([${list.join()}].map(([port, onConnection]) => new Promise((resolve) => {
      const server = require("node:net").createServer({ allowHalfOpen: true }, (socket) => {
        socket.on("error", () => undefined)
        onConnection(socket, server)
      })
      server.listen(port, "127.0.0.1", () => resolve(server.address().port))
    }))).then((ports) => console.log(JSON.stringify(ports)))`
  const { json } = await edge('fig', 'POST', '/exec', { command: boxNode(script), detached: true })
  return waitUntil('the servers listen', async () => {
    const { stdout } = (await edge('fig', 'GET', `/exec/${json.processId}`)).json
    return stdout !== '' && JSON.parse(stdout)
  })
}

const [upper = 0, database = 0, held = 0] = await serve(
  // Responds with the request in upper case when it is complete.
  {
    onConnection:
      'let text = ""; socket.on("data", (data) => { text += data }).on("end", () => socket.end(text.toUpperCase()))',
  },
  { onConnection: 'socket.end("database"); socket.resume()' },
  // Connections that stay open.
  { onConnection: 'socket.write("open"); socket.resume()' },
)
const refuseNext = (error: ApiError) =>
  coordinator.failNextUpgrade(
    'GET /v1/box/fig/ports/',
    refuseUpgrade(error.status, edgeErrorBody(error), error.headers),
  )

/** Starts `box forward`, and waits for its lines on stdout. */
async function start(t: Test, ...args: string[]) {
  let child: ChildProcess | undefined
  const output = { stdout: '', stderr: '' }
  const result = runBox(coordinator, ['forward', ...args], {
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
  const { lines, localPorts, interrupt } = await start(t, 'fig', `0:${upper}`, `0:${database}`, `0:${held}`)
  t.match(lines, [`-> fig:${upper}`, `-> fig:${database}`, `-> fig:${held}`])
  t.equal(await request(connect(t, localPorts[0]), 'hello'), 'HELLO')
  t.equal(await text(connect(t, localPorts[1])), 'database')
  const sockets = Array.from({ length: 20 }, () => connect(t, localPorts[0]))
  t.same(
    await Promise.all(sockets.map((socket, index) => request(socket, `request ${index}`))),
    sockets.map((_, index) => `REQUEST ${index}`),
  )
  const open = connect(t, localPorts[2])
  await once(open, 'data')
  t.match(await interrupt(), { code: 0, stderr: '' })
  await closed(open)
})

t.test('--json prints one object per port', async (t) => {
  const { lines, localPorts, interrupt } = await start(t, 'fig', `0:${upper}`, '--json')
  const [line] = lines.map((line) => JSON.parse(line))
  t.match(line, { box: 'fig', port: upper, localPort: localPorts[0] })
  t.equal(line.addresses[0], '127.0.0.1')
  for (const address of line.addresses) t.equal(await request(connect(t, localPorts[0], address), 'x'), 'X')
  t.equal((await interrupt()).code, 0)
})

t.test('nothing listens on the box: the connection is closed, and one message is printed', async (t) => {
  // A port that was free a moment ago.
  const reserved = createServer().listen(0, '127.0.0.1')
  await once(reserved, 'listening')
  const { port: unused } = reserved.address() as AddressInfo
  reserved.close()
  const { localPorts, output, interrupt } = await start(t, 'fig', `0:${unused}`)
  for (let count = 0; count < 3; count++) await closed(connect(t, localPorts[0]))
  await waitUntil('the message', () => output.stderr !== '')
  const message = `box: fig:${unused}: No process of the box listens on port ${unused}. (not_found)\n`
  // It closes after the connection: the agent looks whether the same server still listens when it has connected.
  const onConnection = 'socket.end("now"); socket.resume().on("close", () => server.close())'
  await serve({ onConnection, port: unused })
  t.equal(await request(connect(t, localPorts[0]), ''), 'now')
  await waitUntil('the second message', async () => {
    await closed(connect(t, localPorts[0]).end())
    return output.stderr === message + message
  })
  t.match(await interrupt(), { code: 0, stderr: message + message })
})

t.test('the limits of the coordinator: the connection is made later', async (t) => {
  const { localPorts, interrupt } = await start(t, 'fig', `0:${upper}`)
  const refused = () => new ApiError('rate_limited', undefined, { headers: { 'retry-after': '0' } })
  for (const error of [refused(), refused(), new ApiError('box_unreachable')]) refuseNext(error)
  t.equal(await request(connect(t, localPorts[0]), 'hello'), 'HELLO')
  t.match(await interrupt(), { code: 0, stderr: '' })
})

t.test('the coordinator restarts: open connections are reset, and new ones wait for it', async (t) => {
  const { localPorts, interrupt } = await start(t, 'fig', `0:${upper}`, `0:${held}`)
  const open = connect(t, localPorts[1])
  await once(open, 'data')
  const waiting = { result: Promise.resolve('') }
  await coordinator.stopDuring(async () => {
    await closed(open)
    waiting.result = request(connect(t, localPorts[0]), 'later')
  })
  t.equal(await waiting.result, 'LATER')
  t.match(await interrupt(), { code: 0, stderr: '' })
})

t.test('a key that was revoked ends the command', async (t) => {
  const { localPorts, result } = await start(t, 'fig', `0:${upper}`)
  refuseNext(new ApiError('unauthorized'))
  await closed(connect(t, localPorts[0]))
  t.match(await result, { code: 4, stderr: /^box: The API key .* was rejected/ })
})

t.test('a local port that is in use', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const { code, stderr } = await runBox(coordinator, ['forward', 'fig', `${port}:3000`])
  t.equal(code, 1)
  t.match(stderr, `box: Port ${port} of this machine is in use. Choose another one: ${port + 1}:3000.`)
})

t.test('refusals', async (t) => {
  const forward = (...args: string[]) => runBox(coordinator, ['forward', ...args])
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
