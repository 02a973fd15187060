// Agents that are rejected again and again write few lines into the log.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import t from 'tap'
import { WebSocket } from 'ws'
import { ApiError } from '../../../../shared/errors.ts'
import {
  AGENT_VERSION_HEADER,
  BOX_HEADER,
  INSTANCE_HEADER,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  TUNNEL_PATH,
} from '../../../../shared/protocol.ts'
import { startTunnelServer } from '../../../support/tunnel.ts'
import { createTestClock } from '../../../support/workspace.ts'

t.test('a line per reason and address in a minute, with the number of suppressed ones', async (t) => {
  const clock = createTestClock()
  const lines: { msg: string; code: string; address: string; suppressed: number }[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const codes: string[] = []
  const server = await startTunnelServer({
    log,
    clock,
    trustedProxies: ['127.0.0.1'],
    onReject: (code) => void codes.push(code),
  })
  t.teardown(() => server.close())
  const { boxId, token } = server.addBox()

  async function connect(headers: Record<string, string>): Promise<number | undefined> {
    const upgrade = request(server.url + TUNNEL_PATH, {
      agent: false,
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
        ...headers,
      },
    })
    const responded = once(upgrade, 'response')
    upgrade.end()
    const [response] = await responded
    response.resume()
    return response.statusCode
  }
  const connectAsStranger = (from: string) =>
    connect({ [BOX_HEADER]: randomUUID(), authorization: 'Bearer bxt_wrong', 'x-forwarded-for': from })

  for (let i = 0; i < 20; i += 1) t.equal(await connectAsStranger('203.0.113.1'), 401)
  t.equal(await connectAsStranger('203.0.113.2'), 401)
  t.equal(await connect({ [BOX_HEADER]: boxId, authorization: `Bearer ${token}` }), 426)
  t.match(lines, [
    { msg: 'agent rejected', code: 'unauthorized', address: '203.0.113.1', suppressed: 0 },
    { msg: 'agent rejected', code: 'unauthorized', address: '203.0.113.2', suppressed: 0 },
    { msg: 'agent rejected', code: 'agent_protocol_unsupported', address: '127.0.0.1', suppressed: 0 },
  ])
  t.equal(lines.length, 3)
  t.equal(codes.length, 22, 'the metrics count all of them')
  clock.advance(60_000)
  await connectAsStranger('203.0.113.1')
  t.match(lines[3], { address: '203.0.113.1', suppressed: 19 })
})

t.test('a box with too many connections gets the reason', async (t) => {
  const codes: string[] = []
  const server = await startTunnelServer({
    onReject: (code) => void codes.push(code),
    onAuthenticated() {
      throw new ApiError('rate_limited', 'This box has 16 tunnels.', { headers: { 'retry-after': '5' } })
    },
  })
  t.teardown(() => server.close())
  const { boxId, token } = server.addBox()
  const ws = new WebSocket(server.url.replace('http', 'ws') + TUNNEL_PATH, {
    headers: {
      [BOX_HEADER]: boxId,
      [PROTOCOL_HEADER]: String(PROTOCOL_VERSION),
      [INSTANCE_HEADER]: 'a',
      [AGENT_VERSION_HEADER]: 'a',
      authorization: `Bearer ${token}`,
    },
  })
  const [, response] = await once(ws, 'unexpected-response')
  t.equal(response.statusCode, 429)
  t.equal(response.headers['retry-after'], '5')
  t.match(await text(response), /"rate_limited","message":"This box has 16 tunnels\."/)
  t.same(codes, ['rate_limited'])
})
