// A coordinator that gets its listening socket from a service manager, which keeps the socket open.
import { request } from 'node:http'
import t from 'tap'
import { takeInheritedSocket } from '../../coordinator/server/inherited-socket.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { PROJECT_DIR } from '../support/project.ts'
import { waitUntil } from '../support/wait-until.ts'

type TcpHandle = {
  fd: number
  bind(host: string, port: number): number
  getsockname(address: object): number
  close(): void
}

/** A bound TCP socket, on which this process accepts no connection. Node has no public function for one. */
function createSocket(): { fd: number; port: number; close(): void } {
  const { TCP, constants } = (
    process as unknown as {
      binding(name: 'tcp_wrap'): { TCP: new (type: number) => TcpHandle; constants: { SERVER: number } }
    }
  ).binding('tcp_wrap')
  const handle = new TCP(constants.SERVER)
  const address = { port: 0 }
  const status = handle.bind('127.0.0.1', 0) || handle.getsockname(address)
  if (status !== 0) throw new Error(`failed to create a socket: ${status}`)
  return { fd: handle.fd, port: address.port, close: () => handle.close() }
}

t.test('a client waits for the coordinator while it restarts', async (t) => {
  const { fd, port, close } = createSocket()
  t.teardown(close)
  const coordinator = await startCoordinatorProcess(t, {}, PROJECT_DIR, { socket: fd })
  t.equal(coordinator.url, `http://127.0.0.1:${port}`, 'listens on the inherited socket')
  await coordinator.kill('SIGTERM')
  let status: number | undefined
  let isConnected = false
  const client = request(`${coordinator.url}/healthz`, { agent: false }, (response) => {
    status = response.statusCode
    response.resume()
  })
  client.once('socket', (socket) => {
    socket.once('connect', () => {
      isConnected = true
    })
  })
  client.end()
  await waitUntil('the client has connected', () => isConnected)
  t.equal(status, undefined)
  await coordinator.start()
  await waitUntil('the response arrives', () => status !== undefined)
  t.equal(status, 200)
})

t.test('the variables of a service manager', (t) => {
  const variables = { LISTEN_PID: '7', LISTEN_FDS: '1', LISTEN_FDNAMES: 'boxwood.socket' }
  const env: NodeJS.ProcessEnv = { ...variables, PATH: '/bin' }
  t.equal(takeInheritedSocket(env, 7), 3)
  t.same(env, { PATH: '/bin' }, 'other programs do not find them')
  t.equal(takeInheritedSocket({}, 7), undefined)
  t.equal(takeInheritedSocket({ ...variables, LISTEN_PID: '8' }, 7), undefined, 'for another process')
  t.equal(takeInheritedSocket({ ...variables, LISTEN_FDS: '0' }, 7), undefined)
  t.throws(() => takeInheritedSocket({ ...variables, LISTEN_FDS: '2' }, 7), { message: /2 sockets/ })
  t.end()
})
