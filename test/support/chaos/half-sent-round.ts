// Thousands of connections of one address have sent half of a request. The owner and the box must remain usable.
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { waitUntil } from '../wait-until.ts'
import type { FixedPortSetup } from './fixed-port-setup.ts'

/** More than the coordinator accepts: it closes some of them. */
const CONNECTIONS = 5000
/** At once: more would only wait in the backlog of the socket. */
const BATCH = 100
const REQUESTS = 10

export async function runHalfSentRound(t: Test, { coordinator, port, box, killAndRestart }: FixedPortSetup) {
  const sockets: Socket[] = []
  let opened = 0
  let isOver = false
  /** Replaces each connection that the coordinator closes, until the round is over. */
  const keepOpen = async () => {
    while (!isOver) {
      const open = sockets.filter(({ destroyed }) => !destroyed)
      sockets.splice(0, sockets.length, ...open)
      for (let count = 0; count < BATCH && sockets.length < CONNECTIONS; count++) {
        const socket = connect(port, '127.0.0.1', () =>
          socket.write('GET /api/v1/me HTTP/1.1\r\nhost: x\r\n'),
        )
        socket.on('error', () => undefined).resume()
        sockets.push(socket)
        opened += 1
      }
      await delay(20)
    }
  }
  const flood = keepOpen()
  try {
    await waitUntil('the connections are open', () => opened >= CONNECTIONS)
    for (let number = 0; number < REQUESTS; number++) {
      const { user } = await coordinator.sendJson('GET', '/api/v1/me')
      t.ok(user, `request ${number} of the owner is answered`)
      t.match(
        await coordinator.exec(box.hostname, 'echo works'),
        { stdout: 'works\n' },
        'the box runs commands',
      )
    }
    await killAndRestart(0)
    const isUsable = async () => {
      const { stdout } = await coordinator.exec(box.hostname, 'echo works').catch(() => ({ stdout: '' }))
      return stdout === 'works\n'
    }
    t.ok(await waitUntil('the agent is connected', isUsable), 'agents connect to the next coordinator')
  } finally {
    isOver = true
    await flood
    for (const socket of sockets) socket.destroy()
    // The teardown deletes the boxes.
    await waitUntil('the coordinator has closed the connections', async () => {
      const answer = await coordinator.sendJson('GET', '/api/v1/me').catch(() => undefined)
      return answer?.user !== undefined
    })
  }
}
