// Connections of the coordinator to TCP ports of a box.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createActivityTracker } from '../../../agent/activity-tracker.ts'
import { createBoxListeners } from '../../../agent/ports/box-listeners.ts'
import { createConnector } from '../../../agent/ports/connect.ts'
import { createPortDialer } from '../../../agent/ports/port-dialer.ts'
import { portRoutes } from '../../../agent/ports/routes.ts'
import { createBoxProcesses } from '../../../agent/vitals/box-processes.ts'
import type { BoxRow } from '../../../coordinator/db/schema.ts'
import { createConnectToPort } from '../../../coordinator/edge/connect-to-port.ts'
import { silentLog, startTestAgent, startTunnelServer } from '../../support/tunnel.ts'
import { DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'

/** @param listeners null: the box has its own network */
async function setUp(
  t: Test,
  { listeners = null }: { listeners?: Parameters<typeof createConnector>[0] } = {},
) {
  let now = 0
  const activity = createActivityTracker({ now: () => now })
  const coordinator = await startTunnelServer()
  t.teardown(() => coordinator.close())
  const box = coordinator.addBox()
  const portDialer = createPortDialer({
    boxId: box.boxId,
    readUrl: async () => coordinator.url,
    readToken: async () => box.token,
  })
  const agent = await startTestAgent(box, coordinator.url, (router) =>
    portRoutes(router, { connector: createConnector(listeners), portDialer, activity, log: silentLog }),
  )
  t.teardown(async () => {
    portDialer.close()
    await agent.close()
  })
  const tunnel = await coordinator.tunnels.wait(box.boxId, DEADLINE_MS)
  const connectToPort = createConnectToPort({ sockets: coordinator.tunnels.sockets })
  const acquired = { box: { id: box.boxId } as BoxRow, tunnel, signal: new AbortController().signal }
  return {
    activity,
    closeAgentConnections: portDialer.close,
    advance: (ms: number) => {
      now += ms
    },
    connectToPort: (port: number) => connectToPort(acquired, port),
    async connect(port: number): Promise<Duplex> {
      const connection = await connectToPort(acquired, port)
      return connection.on('error', () => undefined)
    },
  }
}

async function listen(t: Test, onConnection: (socket: Socket) => void, host = '127.0.0.1') {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket.on('error', () => undefined))
    onConnection(socket)
  })
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => close(server, sockets))
  return { server, sockets, port: (server.address() as AddressInfo).port }
}

function close(server: Server, sockets: Iterable<Socket>): void {
  server.close()
  for (const socket of sockets) socket.destroy()
}

t.test('carries bytes both ways, and the end of each direction', async (t) => {
  const { connect } = await setUp(t)
  const { port } = await listen(t, async (socket) => {
    socket.write('greeting ')
    socket.end((await text(socket)).toUpperCase())
  })
  const connection = await connect(port)
  connection.end('request')
  t.equal(await text(connection), 'greeting REQUEST')
})

t.test('connects to ::1 when nothing listens on 127.0.0.1', async (t) => {
  const { connect } = await setUp(t)
  const { port } = await listen(t, (socket) => socket.end('from ::1'), '::1')
  t.equal(await text(await connect(port)), 'from ::1')
})

t.test('not_found when nothing listens', async (t) => {
  const { connect } = await setUp(t)
  const { server, port } = await listen(t, () => undefined)
  await new Promise((resolve) => server.close(resolve))
  await t.rejects(connect(port), {
    code: 'not_found',
    message: `No process of the box listens on port ${port}.`,
  })
})

t.test('a reset of the server, and the end of the agent, reset the connection', async (t) => {
  const { connect, closeAgentConnections } = await setUp(t)
  const { port, sockets } = await listen(t, (socket) => void socket.resume())
  const reset = async (act: () => void) => {
    const connection = (await connect(port)).resume()
    const error = new Promise((resolve) => connection.once('error', resolve))
    await waitUntil('the server has accepted', () => sockets.size > 0)
    act()
    t.match(await error, { code: 'ECONNRESET' })
    sockets.clear()
  }
  await reset(() => {
    for (const socket of sockets) socket.resetAndDestroy()
  })
  await reset(closeAgentConnections)
})

t.test('a connection that is lost before its user has added listeners', async (t) => {
  const { connectToPort, closeAgentConnections } = await setUp(t)
  const { port } = await listen(t, (socket) => void socket.resume())
  const connection = await connectToPort(port)
  const closed = new Promise((resolve) => connection.once('close', resolve))
  // The coordinator notices a closed connection while it reads.
  connection.read()
  closeAgentConnections()
  await closed
  t.equal(connection.destroyed, true)
})

t.test('a server that does not read makes the client wait, and gets every byte later', async (t) => {
  const { connect } = await setUp(t)
  let served: Socket | undefined
  const { port } = await listen(t, (socket) => {
    served = socket
  })
  const total = 100 * 1024 * 1024
  const connection = await connect(port)
  connection.resume()
  let written = 0
  const write = () => {
    while (written < total) {
      written += 64 * 1024
      if (!connection.write(Buffer.alloc(64 * 1024))) return void connection.once('drain', write)
    }
    connection.end()
  }
  write()
  let last = -1
  let samePolls = 0
  await waitUntil('the client has to wait, or has sent everything', () => {
    samePolls = written === last ? samePolls + 1 : 0
    last = written
    return served !== undefined && (samePolls > 20 || written >= total)
  })
  t.ok(written < total / 2, `${written} bytes are buffered`)
  let received = 0
  served?.on('data', (data) => {
    received += data.length
  })
  await once(served as Socket, 'end')
  t.equal(received, total)
})

t.test('bytes are activity, and an open connection is not', async (t) => {
  const { connect, activity, advance } = await setUp(t)
  let served: Socket | undefined
  const { port } = await listen(t, (socket) => {
    served = socket
  })
  const connection = (await connect(port)).resume()
  await waitUntil('the server has accepted', () => served !== undefined)
  advance(60_000)
  t.equal(activity.idleSeconds(), 60, 'no bytes')
  const sendAndWait = async (from: Duplex, to: Duplex | undefined) => {
    const received = once(to?.resume() as Duplex, 'data')
    from.write('x')
    await received
  }
  await sendAndWait(connection, served)
  t.equal(activity.idleSeconds(), 0, 'a byte from the client')
  advance(60_000)
  t.equal(activity.idleSeconds(), 60)
  await sendAndWait(served as unknown as Duplex, connection)
  t.equal(activity.idleSeconds(), 0, 'a byte from the server')
})

t.test('on the network of the host, a process that is not of the box is refused', async (t) => {
  const processes = createBoxProcesses({ membership: { boxId: 'own', ownUid: null } })
  const { connect } = await setUp(t, { listeners: createBoxListeners({ processes }) })
  const { port } = await listen(t, () => t.fail('the server got a connection'))
  await t.rejects(connect(port), { code: 'not_found' })

  const script =
    "require('net').createServer((s) => s.end('of the box')).listen(0, '127.0.0.1', function () { console.log(this.address().port) })"
  const child = spawn(process.execPath, ['-e', script], {
    env: { ...process.env, BOXWOOD_BOX: 'own' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  t.equal(await text(await connect(Number(String(line)))), 'of the box')
})

t.test('a socket that is replaced between the checks is refused', async (t) => {
  const answers = [['10'], ['11'], undefined]
  const { connect } = await setUp(t, { listeners: { find: async () => answers.shift() } })
  let isClosed = false
  const { port } = await listen(t, (socket) =>
    socket
      .once('data', () => t.fail('the server got bytes'))
      .once('close', () => {
        isClosed = true
      })
      .resume(),
  )
  await t.rejects(connect(port), { code: 'not_found' })
  await waitUntil('the connection is closed', () => isClosed)
})

t.test('a response that a server sends before it has read the request arrives completely', async (t) => {
  const { connect } = await setUp(t)
  const response = Buffer.alloc(16 * 1024, 'response ')
  const { port } = await listen(t, (socket) => {
    // Closing a connection with unread bytes resets it. The response fits into the receive buffer of the agent.
    socket.once('data', () => {
      socket.pause()
      socket.write(response, () => socket.destroy())
    })
  })
  const request = Buffer.alloc(256 * 1024, 'x')
  const sendAndReceive = async () => {
    const connection = await connect(port)
    const send = () => {
      while (!connection.destroyed) if (!connection.write(request)) return void connection.once('drain', send)
    }
    send()
    const received: Buffer[] = []
    connection.on('data', (data: Buffer) => received.push(data))
    await new Promise((resolve) => connection.once('close', resolve))
    return Buffer.concat(received)
  }
  for (let round = 0; round < 5; round++) {
    const results = await Promise.all(Array.from({ length: 5 }, sendAndReceive))
    t.same(
      results.map((received) => received.equals(response)),
      [true, true, true, true, true],
    )
  }
})

t.test('connections that end in any way leave no socket and no timer', async (t) => {
  const { connect } = await setUp(t)
  const behaviours: ((socket: Socket) => void)[] = [
    (socket) => socket.pipe(socket),
    (socket) => socket.resume().end('response'),
    (socket) => socket.once('data', () => socket.resetAndDestroy()),
    (socket) => socket.once('data', () => socket.destroy()),
    (socket) => socket.pause(),
  ]
  const endings: ((connection: Duplex) => void)[] = [
    (connection) => connection.end('request'),
    (connection) => connection.destroy(),
    (connection) => connection.write('request', () => connection.destroy()),
    (connection) => connection.write(Buffer.alloc(256 * 1024), () => connection.destroy()),
  ]
  const servers = await Promise.all(behaviours.map((behave) => listen(t, behave)))
  const resources = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap' || name === 'Timeout').length
  const before = resources()
  const openAndEnd = async (port: number, end: (connection: Duplex) => void) => {
    const connection = (await connect(port)).resume()
    const isClosed = new Promise((resolve) => connection.once('close', resolve))
    end(connection)
    return { connection, isClosed }
  }
  for (let round = 0; round < 5; round++) {
    const open = await Promise.all(servers.flatMap(({ port }) => endings.map((end) => openAndEnd(port, end))))
    // A server that does not read keeps a connection that has ended regularly.
    for (const { sockets } of servers)
      for (const socket of sockets) if (socket.isPaused()) socket.resume().end()
    await Promise.all(open.map(({ isClosed }) => isClosed))
  }
  await waitUntil('the resources are as before', () => resources() <= before)
})
