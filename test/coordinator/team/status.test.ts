// GET /team/status (spec §2.10, §4.13) over HTTP, with a fake agent.

import t from 'tap'
import { ApiError } from '../../../shared/errors.ts'
import { startBoxWithFakeAgent } from '../../support/box-with-fake-agent.ts'
import { createRun, respondJson } from '../../support/fake-prompt-agent.ts'
import { createLimitedKey, createUserKey } from '../../support/limited-key.ts'
import { createTestSession } from '../../support/session.ts'
import { waitUntil } from '../../support/wait-until.ts'

const VITALS = {
  ...{ cpu_pct: 12.5, mem_pct: 40, disk_pct: 1, idle_for_sec: 7, listeners_count: 0, agent_version: '1' },
}

t.test('describes the boxes, the members and the newest events', async (t) => {
  const coordinator = await startBoxWithFakeAgent(t, async ({ path, body }) => {
    if (path !== '/prompts') throw new ApiError('box_unreachable')
    const { runId, newConversationId } = JSON.parse(String(body))
    const run = createRun({ id: runId, conversationId: newConversationId, provider: 'pi' })
    return respondJson(200, { ok: true, type: 'prompt.started', run })
  })
  const { api, edge, box, instance, waitForState } = coordinator
  const { db, heartbeats } = instance.context
  const { userId } = await createTestSession(coordinator, 'member')
  const load = async () => (await api('GET', '/team/status')).json

  const before = await load()
  t.match(before, {
    scope: 'workspace',
    boxes: [
      {
        ...{ id: box.id, hostname: box.hostname, observedState: 'running', desiredState: 'running' },
        ...{ ownerName: String, ownerEmail: null, idleForSec: null, cpuPct: null, memPct: null },
        ...{ lastHeartbeatAt: null, lastPromptAt: null, lastExecAt: null, sessions: 0 },
        ...{ spendTodayMicros: 0, spendCycleMicros: 0 },
      },
    ],
    members: [
      { role: 'owner', boxes: 1, sessions: 0, spendCycleMicros: 0 },
      { userId, role: 'member', boxes: 0 },
    ],
    totals: { spendTodayMicros: 0, spendCycleMicros: 0, running: 1, sessions: 0 },
  })
  t.equal(before.boxes[0].ownerUserId, before.members[0].userId)
  const now = Date.parse(before.now)
  const [start, end] = [Date.parse(before.cycle.start), Date.parse(before.cycle.end)]
  t.ok(start <= now && now < end, 'the cycle contains the time of the response')
  t.same(before.recent, (await api('GET', '/audit?limit=50')).json.events)

  heartbeats.record(box.id, VITALS)
  t.equal((await edge(box.id, 'POST', '/prompts', { provider: 'pi', prompt: 'Hello' })).status, 202)
  const [prompted] = (await load()).boxes
  t.match(prompted, { idleForSec: 7, cpuPct: 12.5, memPct: 40, lastHeartbeatAt: String })
  t.ok(Date.parse(prompted.lastPromptAt) >= now, 'the prompt was accepted after the first request')

  const command = { box_id: box.id, mode: 'sync' as const, source: 'api' as const, command: 'id' }
  for (const [id, requested_at, deleted_at] of [
    ['p_1', 1000, null],
    ['p_2', 2000, null],
    ['p_3', 3000, 4000],
  ] as const)
    await db
      .insertInto('commands')
      .values({
        ...{ id, ...command, command_truncated: 0, cwd: null, status: 'exited', exit_code: 0, signal: null },
        ...{ pid: null, requested_at, started_at: requested_at, finished_at: null, actor_kind: 'user' },
        ...{ actor_user_id: null, actor_token_id: null, output_kept: 1, deleted_at },
        ...{ stdout_bytes: 0, stdout_start: 0, stderr_bytes: 0, stderr_start: 0 },
      })
      .execute()
  t.equal((await load()).boxes[0].lastExecAt, '1970-01-01T00:00:02.000Z', 'the newest that is not deleted')

  await api('POST', `/boxes/${box.id}/suspend`)
  await waitForState(box.id, 'suspended')
  t.match(await load(), {
    boxes: [{ idleForSec: null, cpuPct: null, memPct: null, lastHeartbeatAt: String }],
    totals: { running: 0 },
  })
  await api('DELETE', `/boxes/${box.id}`)
  await waitUntil('the box to be deleted', async () => (await load()).boxes.length === 0)
  t.match(await load(), { members: [{ boxes: 0 }, { boxes: 0 }] })
})

t.test('a contractor sees only their boxes and the events of these, and no members', async (t) => {
  const coordinator = await startBoxWithFakeAgent(t, async () => {
    throw new ApiError('box_unreachable')
  })
  const { api } = coordinator
  const key = await createUserKey(coordinator, 'contractor')
  const load = async () => (await api('GET', '/team/status', undefined, { key })).json
  t.match(await load(), { scope: 'own', boxes: [], members: [], recent: [], totals: { running: 0 } })
  const { json } = await api('POST', '/boxes', { name: 'plum' }, { key })
  await coordinator.waitForState(json.box.id, 'running')
  const status = await load()
  t.match(status, { scope: 'own', boxes: [{ hostname: 'plum', ownerName: 'contractor' }], members: [] })
  t.equal(status.boxes.length, 1)
  t.match(status.recent, [{ kind: 'box.create', boxId: json.box.id }])
  t.equal(status.recent.length, 1)
  const all = (await api('GET', '/team/status')).json
  t.match(all, { scope: 'workspace', boxes: [{ hostname: 'plum' }, {}], members: [{}, { boxes: 1 }] })
})

t.test('a limited key needs read access to the workspace, and all boxes', async (t) => {
  const coordinator = await startBoxWithFakeAgent(t, async () => {
    throw new ApiError('box_unreachable')
  })
  const { box, api } = coordinator
  const send = async (limits: Parameters<typeof createLimitedKey>[1]) =>
    api('GET', '/team/status', undefined, { key: await createLimitedKey(coordinator, limits) })
  t.equal((await send({ access: { workspace: 'read' } })).status, 200)
  t.match(await send({ access: { boxes: 'write' } }), {
    status: 403,
    json: { error: 'key_access_denied', area: 'workspace', level: 'read' },
  })
  t.match(await send({ boxIds: [box.id] }), {
    status: 403,
    json: { error: 'key_access_denied', scope: 'boxes' },
  })
})
