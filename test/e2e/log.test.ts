// The log of a real coordinator: its lines for the operator, as JSON and on a terminal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { PROJECT_DIR, START_SCRIPT } from '../support/project.ts'
import { readRunningCoordinator, stopDataDirectory } from '../support/stop-data-directory.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { NO_TMUX, startTmux } from '../support/tmux.ts'
import { waitUntil } from '../support/wait-until.ts'

const SECRET = 'not-for-the-log'

async function start(t: Test, env: Record<string, string> = {}) {
  const dataDir = createTempDir(t, 'log')
  const child = spawn(join(PROJECT_DIR, START_SCRIPT), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      BOXWOOD_DATA: dataDir,
      BOXWOOD_LISTEN: '127.0.0.1:0',
      BOXWOOD_LOG: 'info',
      ...env,
    },
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text
  })
  const closed = once(child, 'close')
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await closed
    await stopDataDirectory(dataDir)
  })
  const { url } = await waitUntil('the coordinator is ready', () => {
    if (child.exitCode !== null) throw new Error(`the coordinator exited with ${child.exitCode}: ${log}`)
    return readRunningCoordinator(dataDir)
  })
  const authorization = `Bearer ${readFileSync(join(dataDir, 'owner.key'), 'utf8').trim()}`
  const send = (method: string, path: string, body?: object) =>
    fetch(url + path, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
  return {
    dataDir,
    send,
    // biome-ignore lint/suspicious/noExplicitAny: the tests read a few fields.
    sendJson: async (...request: Parameters<typeof send>): Promise<any> => (await send(...request)).json(),
    readLog: () => log,
    waitForLog: (text: string | RegExp) =>
      waitUntil(`the log contains ${text}`, () =>
        typeof text === 'string' ? log.includes(text) : text.test(log),
      ),
    interrupt: () => child.kill('SIGINT'),
    closed,
  }
}

t.test('names the boxes, who used them and how long it took', async (t) => {
  const { send, sendJson, readLog, waitForLog, interrupt, closed } = await start(t)
  const { box } = await sendJson('POST', '/api/v1/boxes', { name: 'fig', env: { TOKEN: SECRET } })
  await waitForLog(/"box":"fig".*"box created"/)
  await sendJson('POST', '/v1/box/fig/exec', { command: `echo ${SECRET}`, env: { A: SECRET } })
  await sendJson('POST', `/api/v1/boxes/${box.id}/suspend`, {})
  await waitForLog('"box suspended"')
  await sendJson('POST', `/api/v1/boxes/${box.id}/wake`, {})
  await waitForLog('"box woken"')
  const { processId } = await sendJson('POST', '/v1/box/fig/exec', {
    command: "trap '' TERM; sleep 600",
    detached: true,
  })
  const follower = await send('GET', `/v1/box/fig/exec/${processId}/stream`)
  const followed = follower.text().catch(() => undefined)
  await sendJson('POST', '/api/v1/boxes', { name: 'plum' })
  await waitForLog(/"box":"plum".*"box created"/)
  const { boxes } = await sendJson('GET', '/api/v1/boxes')
  await send('DELETE', `/api/v1/boxes/${boxes[0].id}`)
  await waitForLog(/"box":"plum".*"box deleted"/)
  interrupt()
  // As `box logs -f` does when its stream ends. The command ignores SIGTERM, so the stop takes some seconds.
  await followed
  await waitUntil('a request is rejected', async () => (await send('GET', '/v1/box/fig/exec')).status === 503)
  await closed

  const lines = readLog()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const find = (msg: string) => lines.filter((line) => line.msg === msg && line.box === 'fig')
  for (const msg of ['box created', 'box suspended', 'box woken'])
    t.match(find(msg), [{ boxId: box.id, durationMs: Number, actor: /^user:usr_/ }], msg)
  t.match(find('command requested'), [
    { mode: 'sync', commandId: /^p_/, actor: /^user:usr_/ },
    { mode: 'detached', commandId: processId },
  ])
  for (const msg of ['agent connected', 'agent disconnected']) t.match(find(msg), [{}, {}], msg)
  t.notMatch(readLog(), SECRET, 'no command text, environment or output')
  t.same(
    lines.filter(({ level }) => level > 30),
    [],
    'nothing unexpected happened, also at the stop with a follower',
  )
})

t.test(
  'a terminal gets short lines around a readable banner',
  {
    skip: NO_TMUX,
  },
  async (t) => {
    const dataDir = createTempDir(t, 'log')
    t.teardown(() => stopDataDirectory(dataDir))
    const env = { BOXWOOD_DATA: dataDir, BOXWOOD_LISTEN: '127.0.0.1:0', BOXWOOD_LOG: 'info' }
    const terminal = await startTmux(t, { cols: 80, rows: 40, env })
    terminal.type(join(PROJECT_DIR, START_SCRIPT))
    terminal.press('Enter')
    const screen = await terminal.waitFor(/INFO: box created box=\w+ .*took=\d+\.\ds$/m)
    t.match(screen, /^\d\d:\d\d:\d\d INFO: local provider ready .*\n(.*\n)?\nBoxwood listens on http:/m)
    t.match(screen, /^Local boxes use isolation level \w+[: ]/m)
    t.notMatch(screen, /"level":30/)
    terminal.press('C-c')
    const stopped = await terminal.waitFor(/^Suspended: \w+\.$[\s\S]*^local\$/m)
    t.notMatch(stopped, /Error|^ +at /m)
  },
)

t.test('BOXWOOD_LOG_FORMAT=pretty prints short lines without a terminal', async (t) => {
  const { readLog, waitForLog } = await start(t, { BOXWOOD_LOG_FORMAT: 'pretty' })
  await waitForLog(/^\d\d:\d\d:\d\d INFO: box created box=\w+ actor=user:usr_\w{6} took=\d+\.\ds$/m)
  t.notMatch(readLog(), '\u001b', 'no colours')
})
