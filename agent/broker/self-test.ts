// A request through the listener to a host that only the coordinator answers: whether programs of the box can use secrets.
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { BROKER_TEST_HOST } from '../../shared/secret-hosts.ts'
import { PROXY_USER } from './credential.ts'
import type { BrokerEndpoint } from './variables.ts'

/** Below the time that the coordinator waits for the response to PUT /environment. */
const TIMEOUT_MS = 8_000
const NO_CONTENT = 204

export type SelfTestResult = { state: 'ready'; message: null } | { state: 'failed'; message: string }

/** @param certificate the certificate authority of the workspace, PEM. Never rejects. */
export async function testBroker(
  endpoint: BrokerEndpoint,
  certificate: string,
  timeoutMs = TIMEOUT_MS,
): Promise<SelfTestResult> {
  const timeout = AbortSignal.timeout(timeoutMs)
  let socket: Socket | undefined
  try {
    socket = await openTunnel(endpoint, timeout)
    const status = await requestStatus(socket, certificate, timeout)
    if (status === NO_CONTENT) return { state: 'ready', message: null }
    return {
      state: 'failed',
      message: `The coordinator responded to the test request with status ${status}.`,
    }
  } catch (error) {
    const reason = timeout.aborted
      ? `no response within ${timeoutMs / 1000} s`
      : error instanceof Error
        ? error.message
        : String(error)
    return {
      state: 'failed',
      message: `The test request to the coordinator failed: ${reason}`.slice(0, 1000),
    }
  } finally {
    socket?.destroy()
  }
}

async function openTunnel({ port, credential }: BrokerEndpoint, signal: AbortSignal): Promise<Socket> {
  const request = requestHttp({
    ...{ host: '127.0.0.1', port, method: 'CONNECT', path: `${BROKER_TEST_HOST}:443`, agent: false, signal },
    headers: {
      'proxy-authorization': `Basic ${Buffer.from(`${PROXY_USER}:${credential}`).toString('base64')}`,
    },
  })
  const { response, socket } = await new Promise<{ response: IncomingMessage; socket: Socket }>(
    (resolve, reject) => {
      request.on('connect', (response, socket) => resolve({ response, socket: socket as Socket }))
      request.on('error', reject)
      request.end()
    },
  )
  socket.on('error', () => undefined)
  if (response.statusCode === 200) return socket
  socket.destroy()
  throw new Error(`the listener responded with status ${response.statusCode}`)
}

async function requestStatus(socket: Socket, ca: string, signal: AbortSignal): Promise<number | undefined> {
  const tls = connectTls({ socket, ca, servername: BROKER_TEST_HOST, ALPNProtocols: ['http/1.1'] })
  const request: ClientRequest = requestHttps({
    ...{ host: BROKER_TEST_HOST, defaultPort: 443, path: '/', signal },
    // Without an agent, which would ignore this function.
    createConnection: () => tls,
  })
  return new Promise((resolve, reject) => {
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    request.on('error', reject)
    // An abort destroys the request before it has a socket.
    tls.on('error', reject)
    request.end()
  })
}
