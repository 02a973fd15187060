// Every coding agent ends its output with a final event: with it the run has a result, without it the run has none.
import t from 'tap'
import { providers } from '../../../../agent/prompts/providers/providers.ts'
import type { JsonObject, Provider } from '../../../../agent/prompts/providers/types.ts'
import { EXIT_GRACE_MS, findExitGrace, WORK_GRACE_MS } from '../../../../agent/prompts/runs/exit-grace.ts'
import { findOutcome } from '../../../../agent/prompts/runs/run-status.ts'
import { mapLines, readRecordedLines } from './mapping.ts'

/** The recorded output of a success, and the number of its last lines without which there is no result. */
const RECORDED: [Provider, string, number][] = [
  [providers.claude, 'claude-tool-call', 1],
  [providers.claude, 'claude-background-agent', 2],
  [providers.codex, 'codex-tool-call', 1],
  [providers.codex, 'codex-mcp', 1],
  [providers.opencode, 'opencode-tool-call', 1],
  // Versions before agent_settled end with agent_end.
  [providers.pi, 'pi-tool-call', 2],
]

function findResult(provider: Provider, lines: readonly JsonObject[]) {
  const { state } = mapLines(provider, lines)
  return findOutcome(state) ?? provider.resolveUnfinished(state)
}

for (const [provider, name, count] of RECORDED)
  t.test(name, async (t) => {
    const lines = readRecordedLines(name)
    t.same(findResult(provider, lines), { status: 'done' })
    t.equal(findExitGrace(mapLines(provider, lines).state), EXIT_GRACE_MS)
    for (let length = 0; length <= lines.length - count; length++)
      t.equal(findResult(provider, lines.slice(0, length)), null, `${length} lines`)
    t.equal(findResult(provider, [...lines, ...lines.slice(0, -count)]), null, 'another turn without an end')
    t.same(findResult(provider, [...lines, ...lines]), { status: 'done' })
  })

const SESSION = { session_id: 'e0fb6f00-d943-4a40-b6a1-9b83ee633114' }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'waiting', ...SESSION }
const system = (subtype: string, fields: JsonObject): JsonObject => ({
  type: 'system',
  subtype,
  ...fields,
  ...SESSION,
})

t.test('Claude Code: a result while a sub-agent works in the background', async (t) => {
  const { claude } = providers
  const grace = (lines: JsonObject[]) => findExitGrace(mapLines(claude, lines).state)
  const started = [system('task_started', { task_id: 'a1', task_type: 'local_agent' }), RESULT]
  t.equal(grace(started), WORK_GRACE_MS)
  t.equal(grace([...started, system('task_notification', { task_id: 'a2' })]), WORK_GRACE_MS)
  t.equal(grace([...started, system('task_notification', { task_id: 'a1' })]), EXIT_GRACE_MS)
  const updated = (status: string) => system('task_updated', { task_id: 'a1', patch: { status } })
  t.equal(grace([...started, updated('running')]), WORK_GRACE_MS)
  t.equal(grace([...started, updated('completed')]), EXIT_GRACE_MS)
  const changed = (...ids: string[]) =>
    system('background_tasks_changed', { tasks: ids.map((id) => ({ task_id: id })) })
  t.equal(grace([changed('a1', 'a2'), RESULT]), WORK_GRACE_MS)
  t.equal(grace([changed('a1', 'a2'), RESULT, changed()]), EXIT_GRACE_MS)
  const message = { type: 'assistant', parent_tool_use_id: 'call_1', message: { content: [] } }
  t.same(findResult(claude, [...started, message]), { status: 'done' }, 'the sub-agent is not the run')
})

t.test('Claude Code: the result about a task of an earlier process is not that of the run', async (t) => {
  const aboutTask = { ...RESULT, result: '', origin: { kind: 'task-notification' } }
  t.equal(findResult(providers.claude, [aboutTask]), null)
  t.same(findResult(providers.claude, [aboutTask, RESULT]), { status: 'done' })
})
