// What a terminal shows while a command waits for a box: one changing line, which the final state replaces.
import xterm from '@xterm/headless'
import t from 'tap'
import { runBoxInPty } from './box-in-pty.ts'
import { startCliCoordinator } from './coordinator.ts'

const coordinator = await startCliCoordinator(t, ['fig'])

/** Runs `script` and returns the output and the lines that remain on the screen. */
async function show(t: Tap, script: string, env: Record<string, string> = {}) {
  const pty = runBoxInPty(t, coordinator, `unset CI\n${script}`, { env })
  await pty.waitForExit()
  const terminal = new xterm.Terminal({ cols: 80, rows: 24, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(pty.output, resolve))
  const buffer = terminal.buffer.active
  const lines = Array.from(
    { length: buffer.length },
    (_, row) => buffer.getLine(row)?.translateToString(true) ?? '',
  )
  return { output: pty.output, lines: lines.filter((line) => line !== '') }
}
type Tap = Parameters<typeof runBoxInPty>[0]

t.test('the changing line becomes the final state', async (t) => {
  const { output, lines } = await show(t, 'box stop fig; box start fig')
  t.match(output, /[⠁-⣿].* fig: .*running/u, 'a spinner with the state')
  t.same(lines, ['fig: suspended', 'fig: running'])
  t.ok(output.lastIndexOf('\x1b[?25h') > output.lastIndexOf('\x1b[?25l'), 'the cursor is visible')
})

t.test('create leaves the name, rm leaves the result', async (t) => {
  t.match((await show(t, 'box create plum 2>&1')).lines, [/^plum$/, /^Run a command on the box/])
  t.match((await show(t, 'box rm -y plum')).lines, ['plum: deleted'])
})

t.test('a failure is printed instead of the changing line', async (t) => {
  coordinator.changeDetailNext({ observedState: 'provision_failed' })
  t.match((await show(t, 'box create kiwi', { COLUMNS: '80' })).lines[0], /^box: Could not create kiwi/)
})

t.test('Ctrl-C removes the line and shows the cursor', async (t) => {
  const pty = runBoxInPty(t, coordinator, `unset CI; sh -c 'trap : INT; $BOX rm -y fig; echo code=$?'`)
  coordinator.failNext('GET /api/v1/operations/', () => pty.type('\x03'))
  await pty.waitFor('fig: deleting')
  await pty.waitFor('\x1b[?25h')
  await pty.waitFor('code=130')
})

t.test('with TERM=dumb or CI: plain lines; with NO_COLOR: no colours', async (t) => {
  await coordinator.addBox('lime')
  for (const setting of ['TERM=dumb', 'CI=true']) {
    coordinator.holdUntilPolled('stop', 'start')
    const { output } = await show(t, `export ${setting} NO_COLOR=1; box stop lime; box start lime`)
    t.equal(output, 'lime: suspending\r\nlime: suspended\r\nlime: waking\r\nlime: running\r\n', setting)
  }
  t.match((await show(t, 'box stop lime')).output, '\u001b[90msuspended\u001b[39m')
  t.notOk((await show(t, 'export NO_COLOR=1; box start lime')).output.includes('\u001b[32m'))
})
