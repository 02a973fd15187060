// kill -9 of the coordinator and of the agent during a run: its events have no gap and no double, and its status is true.
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { PromptEvent, PromptEvents } from '../../shared/api/prompts.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const EVENTS = 300
const POLL_MS = 100

/** A substitute for Claude Code: its answer is a number every 20 ms. */
const PROGRAM = `#!/bin/sh
[ "$1" = --version ] && echo '2.1.0 (Claude Code)' && exit
cat >/dev/null
echo '{"type":"system","subtype":"init","session_id":"6f1cd5d0-0000-4000-8000-000000000000"}'
i=0
while [ $i -lt ${EVENTS} ]; do
  i=$((i + 1))
  echo '{"type":"assistant","message":{"content":[{"type":"text","text":"'$i'"}]}}'
  sleep 0.02
done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'
`

t.test('a run continues while the coordinator and the agent are killed', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { sendJson, exec, start, kill } = coordinator
  const { hostname, id: boxId } = await coordinator.waitForFirstBox()
  const prompts = `/v1/box/${hostname}/prompts`
  await exec(
    hostname,
    `mkdir -p .local/bin && cat >.local/bin/claude <<'END' && chmod 755 .local/bin/claude\n${PROGRAM}END`,
  )
  await sendJson('PATCH', `/api/v1/boxes/${boxId}`, { env: { ANTHROPIC_API_KEY: 'test-key' } })
  const { status, run } = await sendJson('POST', prompts, { provider: 'claude', prompt: 'count' })
  t.equal(status, 202)

  const events: PromptEvent[] = []
  let page: PromptEvents | undefined
  const readPage = async (): Promise<PromptEvents> => {
    page = await waitUntil('the box responds', async () => {
      const response = await sendJson('GET', `${prompts}/${run.id}/events?after=${events.at(-1)?.seq ?? 0}`)
      return response.status === 200 ? (response as PromptEvents) : undefined
    })
    events.push(...page.events)
    return page
  }
  await waitUntil('events before the kills', async () => (await readPage()) && events.length > 5)
  await kill('SIGKILL')
  await start()
  await waitUntil('events after the first kill', async () => (await readPage()) && events.length > 20)
  process.kill(findAgentPid(boxId) ?? Number.NaN, 'SIGKILL')
  await kill('SIGKILL')
  await start()
  await waitUntil('the run has ended', async () => {
    await delay(POLL_MS)
    return (await readPage()).finished
  })

  t.match(page?.run, { id: run.id, status: 'done', exitCode: 0, error: null, eventCount: events.length })
  t.strictSame(
    events.map(({ seq }) => seq),
    Array.from(events, (_, index) => index + 1),
  )
  t.strictSame(
    events.flatMap(({ type, text }) => (type === 'text' ? [text] : [])),
    Array.from({ length: EVENTS }, (_, index) => String(index + 1)),
  )
})
