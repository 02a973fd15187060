import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createRegistry } from '../../../coordinator/tunnel/registry.ts'
import type { Session } from '../../../coordinator/tunnel/session.ts'
import { startTestAgent, startTestCoordinator, waitUntil } from '../../support/tunnel.ts'

function fakeSession(boxId: string, generation: number): Session & { destroyedBy?: string } {
  const session = {
    boxId,
    generation,
    destroy(reason: string) {
      session.destroyedBy = reason
    },
  } as unknown as Session & { destroyedBy?: string }
  return session
}

t.test('the late close of a replaced connection leaves the newer one alone', async (t) => {
  const registry = createRegistry()
  const gone: string[] = []
  registry.events.on('disconnected', (boxId) => gone.push(boxId))
  const [first, second] = [fakeSession('box', 1), fakeSession('box', 2)]
  t.ok(registry.activate(first))
  t.ok(registry.activate(second))
  t.match(first.destroyedBy, /newer/)
  registry.remove(first, 'closed late')
  t.equal(registry.get('box'), second)
  t.same(gone, [])
  registry.remove(second, 'closed')
  t.equal(registry.get('box'), undefined)
  t.same(gone, ['box'])
})

t.test('a connection that is ready late does not take over from a newer one', async (t) => {
  const registry = createRegistry()
  const [older, newer] = [fakeSession('box', 1), fakeSession('box', 2)]
  t.ok(registry.activate(newer))
  t.notOk(registry.activate(older))
  t.equal(registry.get('box'), newer)
  t.equal(newer.destroyedBy, undefined)
})

t.test('waiting for a box ends when it comes, when time is up and when the caller leaves', async (t) => {
  const registry = createRegistry()
  const session = fakeSession('box', 1)
  const waiting = registry.wait('box', 5000)
  registry.activate(session)
  t.equal(await waiting, session)
  await t.rejects(registry.wait('other', 5), { code: 'box_unreachable' })
  const abort = new AbortController()
  const left = registry.wait('other', 5000, abort.signal)
  abort.abort(new Error('left'))
  await t.rejects(left, { message: 'left' })
})

t.test('a second agent with the same token is refused while the first one lives', async (t) => {
  const coordinator = await startTestCoordinator()
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const first = await startTestAgent(box, coordinator.url)
  t.after(() => first.close())
  const tunnel = await coordinator.tunnels.wait(box.boxId, 5000)
  let refusals = 0
  const second = await startTestAgent(box, coordinator.url, undefined, {
    readToken: async () => {
      refusals += 1
      return box.token
    },
  })
  t.after(() => second.close())
  await waitUntil('the second agent has tried three times', () => refusals > 3)
  t.equal(coordinator.tunnels.current(box.boxId), tunnel)

  await first.close()
  const next = await coordinator.tunnels.wait(box.boxId, 5000)
  await waitUntil(
    'the second agent has the box',
    () => coordinator.tunnels.current(box.boxId)?.instanceId === second.instanceId,
  )
  t.ok(next.generation > tunnel.generation)
})

t.test('an agent that dials again takes over from its own older connection at once', async (t) => {
  const coordinator = await startTestCoordinator({ probeTimeoutMs: 60_000 })
  t.after(() => coordinator.close())
  const box = coordinator.addBox()
  const instanceId = randomUUID()
  const disconnected: string[] = []
  coordinator.tunnels.on('disconnected', (boxId) => disconnected.push(boxId))
  const older = await startTestAgent(box, coordinator.url, undefined, {
    instanceId,
    backoff: { baseMs: 1e9, maxMs: 1e9 },
  })
  const first = await coordinator.tunnels.wait(box.boxId, 5000)
  const newer = await startTestAgent(box, coordinator.url, undefined, {
    instanceId,
    backoff: { baseMs: 1e9, maxMs: 1e9 },
  })
  t.after(() => Promise.all([older.close(), newer.close()]))
  await waitUntil(
    'the newer connection holds the box',
    () => coordinator.tunnels.current(box.boxId) !== first,
  )
  t.same(disconnected, [], 'the box was connected all the time')
  await t.rejects(first.request({ method: 'GET', path: '/' }), { code: 'box_unreachable' })
})
