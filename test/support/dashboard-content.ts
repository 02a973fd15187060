// Fills a coordinator with the work of a small team, for tests and screenshots of the dashboard.

import { transaction } from '../../coordinator/db/transaction.ts'
import type { Box } from '../../shared/api/boxes.ts'
import type { MetricsSample } from '../../shared/api/metrics.ts'
import { SAMPLE_SECONDS } from '../../shared/report-limits.ts'
import type { ApiResponse, TestCoordinator } from './coordinator.ts'
import { createTestSession } from './session.ts'
import { waitUntil } from './wait-until.ts'

const MINUTE_MS = 60_000
const GiB = 2 ** 30
const MiB = 2 ** 20

const PRICES = `export type Line = { name: string; cents: number; count: number }

/** The total in cents, with the discount for ten pieces or more. */
export function getTotal(lines: readonly Line[]): number {
  return lines.reduce((sum, { cents, count }) => sum + cents * count * (count >= 10 ? 0.9 : 1), 0)
}
`

const README = `# Shop

The service of the shop: prices, orders and invoices.

    sh test.sh    # the tests
    node server.ts
`

const TEST_SCRIPT = String.raw`printf '\033[1mprices\033[0m\n'
for name in 'adds the lines' 'gives a discount for ten pieces' 'accepts an empty order'; do
  printf '  \033[32m✔\033[0m %s \033[90m(%d ms)\033[0m\n' "$name" 2
done
printf '\033[1morders\033[0m\n'
printf '  \033[32m✔\033[0m stores an order \033[90m(14 ms)\033[0m\n'
if [ -e src/invoices.ts ]; then
  printf '  \033[32m✔\033[0m rounds to cents \033[90m(1 ms)\033[0m\n\n\033[32m5 passed\033[0m\n'
else
  printf '  \033[31m✘\033[0m rounds to cents\n\n\033[31m1 failed\033[0m, 4 passed\n'
  exit 1
fi
`

/** A scripted coding agent with the output of Claude Code. */
const CLAUDE = String.raw`#!/bin/sh
if [ "$1" = --version ]; then echo '2.1.329 (Claude Code)'; exit 0; fi
prompt=$(cat)
cat <<'END'
{"type":"system","subtype":"init","session_id":"5e551011-0000-4000-8000-000000000001"}
{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"The total has fractions of a cent. The discount is the only place where they can come from."}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look at how the total is computed."},{"type":"tool_use","id":"1","name":"Read","input":{"file_path":"src/prices.ts"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"export function getTotal(lines: readonly Line[]): number {"}]}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"2","name":"Edit","input":{"file_path":"src/prices.ts","old_string":"count >= 10 ? 0.9 : 1), 0)","new_string":"count >= 10 ? 90 : 100), 0) / 100"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"The file has been changed."}]}]}}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"3","name":"Bash","input":{"command":"sh test.sh"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":"5 passed"}]}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"The total is rounded to cents now, and the tests pass.\n\n- **src/prices.ts**: the discount is computed in whole percents\n- the result is divided by 100 once, at the end\n\nRun \x60sh test.sh\x60 to see it."}]}}
END
case $prompt in *watch*) trap 'exit 0' INT; while :; do sleep 0.05; done ;; esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"end"}'
`.replaceAll('\\x60', '`')

/** The commands with how many minutes ago they ran, and for how many seconds. */
const COMMANDS = [
  { command: 'git clone https://git.example.com/shop.git .', minutes: 52, seconds: 4 },
  { command: 'npm ci', minutes: 50, seconds: 38 },
  { command: 'sh test.sh', minutes: 41, seconds: 12 },
  { command: 'grep -rn getTotal src', minutes: 38, seconds: 1 },
  { command: 'touch src/invoices.ts', minutes: 24, seconds: 1 },
  { command: 'sh test.sh', minutes: 17, seconds: 11 },
] as const

/** Half an hour of work with a load, ten minutes without samples, and a second load. */
function createSamples(now: number): MetricsSample[] {
  const last = Math.floor(now / 1000 / SAMPLE_SECONDS) - 1
  return Array.from({ length: 110 }, (_, index) => index)
    .filter((index) => index < 62 || index > 70)
    .map((index) => {
      const wave = Math.sin(index / 5) * 6 + Math.sin(index / 2) * 3
      const isBusy = (index > 8 && index < 26) || (index > 80 && index < 96)
      const cpu = Math.max(1, (isBusy ? 62 : 9) + wave)
      return {
        type: 'metrics.sample',
        start: (last - 110 + index) * SAMPLE_SECONDS,
        values: {
          cpu_pct: cpu,
          cpu_count: 2,
          mem_used_bytes: (0.6 + (isBusy ? 0.5 : 0) + index / 500) * GiB,
          mem_total_bytes: 4 * GiB,
          load1: cpu / 50,
          load5: cpu / 60,
          load15: cpu / 70,
          process_count: isBusy ? 31 : 12,
          listener_count: 1,
          disk_read_bytes_per_sec: isBusy ? 3 * MiB + wave * 1e5 : 2e4,
          disk_write_bytes_per_sec: isBusy ? 9 * MiB + wave * 5e5 : 9e4,
        },
        fs: [
          {
            mount: '/',
            used_bytes: (2.1 + index / 200) * GiB,
            total_bytes: 20 * GiB,
            read_bytes_per_sec: isBusy ? 3 * MiB : 2e4,
            write_bytes_per_sec: isBusy ? 9 * MiB : 9e4,
          },
        ],
        ifaces: [
          {
            name: 'eth0',
            rx_bytes_per_sec: isBusy ? 4 * MiB + wave * 2e5 : 3e3,
            tx_bytes_per_sec: isBusy ? MiB : 1e3,
          },
        ],
      }
    })
}

/**
 * Expects a coordinator with local machines and one running box, which gets the name api, files, commands, metrics and a coding
 * agent. There are a second running box with a server, a suspended one, and one of another member.
 */
export async function fillDashboard(coordinator: TestCoordinator, box: Box): Promise<{ commandId: string }> {
  const { waitForState, instance } = coordinator
  const api = throwErrors(coordinator.api)
  const edge = throwErrors(coordinator.edge)
  const { db, boxMetrics } = instance.context
  const owner = await createTestSession(coordinator)
  const ada = await createTestSession(coordinator, 'member')
  const lin = await createTestSession(coordinator, 'contractor')
  for (const { userId, name } of [
    { userId: owner.userId, name: 'Grace' },
    { userId: ada.userId, name: 'Ada' },
    { userId: lin.userId, name: 'Lin' },
  ])
    await db
      .updateTable('users')
      .set({ name, email: `${name.toLowerCase()}@example.com` })
      .where('id', '=', userId)
      .execute()
  await api('PATCH', '/workspace', { name: 'Shop' }, owner)
  await api('PATCH', `/boxes/${box.id}`, { name: 'api', autoPauseMin: 120 })
  await api('PATCH', `/boxes/${box.id}`, { env: { ANTHROPIC_API_KEY: 'test' } })

  const others = [
    { name: 'web', session: ada },
    { name: 'worker', session: owner },
    { name: 'review', session: lin },
  ]
  const created = new Map<string, string>()
  for (const { name, session } of others)
    created.set(name, (await api('POST', '/boxes', { name }, session)).json.box.id)
  for (const id of created.values()) await waitForState(id, 'running')

  await edge('api', 'POST', '/exec', { command: 'mkdir -p ~/src ~/docs ~/.local/bin' })
  for (const [path, content] of [
    ['README.md', README],
    ['test.sh', TEST_SCRIPT],
    ['src/prices.ts', PRICES],
    ['docs/orders.md', '# Orders\n'],
  ])
    await edge('api', 'PUT', '/files', { path, content })
  await edge('api', 'PUT', '/files', { path: '.local/bin/claude', content: CLAUDE, mode: '0755' })
  await db.deleteFrom('commands').where('box_id', '=', box.id).execute()
  // The first two need a network.
  const prefix = 'git() { echo "Cloning into .."; }; npm() { echo "added 214 packages in 38s"; }; '
  let commandId = ''
  for (const { command, minutes, seconds } of COMMANDS) {
    const text = /^(git|npm)/.test(command) ? prefix + command : command
    commandId = (await edge('api', 'POST', '/exec', { command: text })).json.commandId
    const path = `/boxes/${box.id}/commands/${commandId}`
    await waitUntil('the output of the command is stored', async () => {
      const { status, json } = await coordinator.api('GET', path)
      return status === 200 && json.command.status === 'exited'
    })
    const startedAt = Date.now() - minutes * MINUTE_MS
    await db
      .updateTable('commands')
      .set({
        command,
        requested_at: startedAt,
        started_at: startedAt,
        finished_at: startedAt + seconds * 1000,
      })
      .where('id', '=', commandId)
      .execute()
  }
  await edge('api', 'POST', '/exec', {
    command: `exec node -e "require('http').createServer((q, s) => s.end('shop')).listen(0)"`,
    detached: true,
  })
  await db
    .updateTable('box_events')
    .set(({ eb }) => ({ at: eb('at', '-', 54 * MINUTE_MS) }))
    .where('box_id', '=', box.id)
    .execute()
  await db
    .updateTable('boxes')
    .set(({ eb }) => ({ created_at: eb('created_at', '-', 54 * MINUTE_MS) }))
    .where('id', '=', box.id)
    .execute()
  await transaction(db, (trx) => boxMetrics.reportHandler.apply(trx, box.id, createSamples(Date.now())))
  await api('POST', '/snapshots', { boxId: box.id, name: 'before-invoices' })
  await api('POST', '/keys', { name: 'ci', expiresInDays: 90 }, owner)
  await api('POST', '/members', { email: 'linus@example.com', role: 'member' }, owner)
  await api('PATCH', '/workspace/policies', { memberBoxLimit: 5 }, owner)
  await api('POST', `/boxes/${created.get('worker')}/suspend`)
  await waitForState(created.get('worker') ?? '', 'suspended')
  return { commandId }
}

/** A response with an error is thrown. */
const throwErrors =
  <Args extends unknown[]>(send: (...args: Args) => Promise<ApiResponse>) =>
  async (...args: Args): Promise<ApiResponse> => {
    const response = await send(...args)
    if (response.status >= 400) throw new Error(`${args.slice(0, 3).join(' ')}: ${response.text}`)
    return response
  }
